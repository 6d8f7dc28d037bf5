"""Output of Slurm commands: the content of a file shows which command printed it.

Read are sacct, `scontrol show job -d`, `scontrol show node`, `scontrol show reservation`,
`sinfo -N`, `sacctmgr show event` and `sacctmgr show reservation`, and with `--json` sacct, squeue,
`scontrol show jobs`, `scontrol show nodes` and sinfo. The modules that parse them take text alone,
so that live commands can use them as well.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import delimited, files, row_groups
from goodput_ingest.formats.json_text import json_stream
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.prefetch import prefetch
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.slurm import accounting as slurm_accounting
from goodput_ingest.sources.slurm import controller, events, fields, jobs, json_answers, nodes
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import Reject

NO_RESERVATIONS = "No reservations in the system"
SINFO_SAMPLE_LINES = 50
RECORDS_PER_PART = 20_000
SELDOM = frozenset({"gpu_parts", "job_requests"})  # tables that most listings have no row of
BLOCKS_PER_BATCH = 2  # of row groups: DuckDB writes each with one thread, several at once


@dataclass
class _Held:
    """Blocks of accounting that are written together."""

    digests: list[str] = field(default_factory=list)
    tables: dict[str, row_groups.Held] = field(default_factory=dict)

    def add(self, block: delimited.Block, tables: Sequence[Parsed], rejects: list[Reject]) -> None:
        """Hold a parsed block, and its rows that were rejected before."""
        self.digests.append(block.digest)
        for parsed in tables:
            own = [*rejects, *block.rejects] if parsed.table == "job_runs" else []
            table = self.tables.setdefault(parsed.table, row_groups.Held(parsed.table))
            table.add(replace(parsed, rejects=[*own, *parsed.rejects]))


class Slurm(RecordedFile):
    """A file that a Slurm command printed."""

    name: ClassVar[str] = "slurm"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the first bytes are a text of Slurm that is read here."""
        return kind_of(head) is not None

    def extract(self) -> Iterator[Batch]:
        """Yield the file's rows; raises IngestError where it is none of these texts.

        Also raises it where times carry no offset and `options.zone` is not given, and where rows
        must name their cluster and neither they nor the options do.
        """
        if (listing := json_answers.kind_of(files.head(self.path))) is not None:
            yield from self._json(listing)
            return
        blocks = delimited.blocks(self.path)
        first = next(blocks, None)
        kind = None if first is None else kind_of(first.data[: files.HEAD_BYTES])
        if first is None or kind is None:
            raise IngestError(
                f"{self.path}: slurm: this is not a text of Slurm that can be read. Expected the "
                "output of sacct -P, scontrol show job -d, scontrol show node, scontrol show "
                "reservation, jobcomp/filetxt, sinfo -N (with | between fields), sacctmgr -P show "
                "event or reservation, or sacct, squeue, scontrol and sinfo with --json."
            )
        try:
            if kind == "accounting":
                yield from self._accounting(first, blocks)
            else:
                yield from self._whole(kind, [first, *blocks])
        except IngestError as error:
            raise IngestError(f"{self.path}: {error}") from error

    def _accounting(
        self, first: delimited.Block, rest: Iterator[delimited.Block]
    ) -> Iterator[Batch]:
        header = _header(first.data)
        slurm_accounting.require_fields(header.names)
        wanted = fields.FIELDS
        accounting = self._context(self.options.observed_at)
        rows, rejects = delimited.rows_of(first, header, wanted)
        rejects = [*slurm_accounting.lacking(header.names), *rejects]
        tracks = slurm_accounting.names_gpus(rows) or self._names_gpus_later(header, first)
        accounting = replace(accounting, tracks_gpus=tracks)
        meaning = f"{header.line}\n{tracks}"
        held = _Held()
        try:
            for block in chain([first], prefetch(rest)):
                if block is not first:
                    rows, rejects = delimited.rows_of(block, header, wanted)
                tables = slurm_accounting.parse(rows, accounting, header.delimiter)
                held.add(block, tables, rejects)
                del block  # its memory is used for another one
                if len(held.digests) == BLOCKS_PER_BATCH:
                    yield from self._batches(held, meaning)
                    held = _Held()
        except IngestError:  # where one block is refused those before it are kept
            yield from self._batches(held, meaning)
            raise
        yield from self._batches(held, meaning)

    def _batches(self, held: _Held, meaning: str) -> Iterator[Batch]:
        digest = self._digest("\n".join(held.digests), meaning)
        return (self._batch(table.rest(), digest) for table in held.tables.values())

    def _names_gpus_later(self, header: delimited.Header, first: delimited.Block) -> bool:
        """Say whether a later block names GPUs, where the first does not."""
        marker = slurm_accounting.TRACKED.encode()
        for block in delimited.blocks(self.path):
            if block.first_line == first.first_line or marker not in block.data:
                continue
            rows, _ = delimited.rows_of(block, header, fields.FIELDS)
            if slurm_accounting.names_gpus(rows):
                return True
        return False

    def _json(self, kind: str) -> Iterator[Batch]:
        """Yield the rows of a JSON listing part by part; one that breaks off says so at the end."""
        records: list[tuple[int, object]] = []
        number = 0
        broken_off: list[Reject] = []
        updated_at: datetime | None = None
        with files.open_bytes(self.path) as file:
            found = json_stream.items(file, json_answers.ARRAYS)
            while True:
                try:
                    key, value = next(found, ("", None))
                except json_stream.BrokenDocumentError as error:
                    key = ""
                    broken_off = [*broken_off, Reject(number + 1, f"slurm: {error}.")]
                if key in json_answers.ARRAYS:
                    number += 1
                    records.append((number, value))
                elif key == "last_update":
                    updated_at = json_answers.last_update(value)
                elif key == "errors" and (reason := json_answers.failure(value)):
                    broken_off = [Reject(None, f"slurm: the command failed: {reason}.")]
                if not key and not number and broken_off:
                    raise IngestError(f"{self.path}: {broken_off[0].reason}")
                if not key or len(records) >= RECORDS_PER_PART:
                    yield from self._json_part(kind, records, updated_at, broken_off)
                    records, broken_off = [], []
                if not key:
                    return

    def _json_part(
        self,
        kind: str,
        records: list[tuple[int, object]],
        updated_at: datetime | None,
        broken_off: list[Reject],
    ) -> Iterator[Batch]:
        options = self.options
        observed_at = options.observed_at or updated_at
        digest = self._digest(f"{kind}\n{updated_at}\n{json.dumps(records)}\n{broken_off}")
        if kind == "json accounting":
            tables = json_answers.parse_records(records, self._context(options.observed_at))
        elif kind == "json queue":
            tables = json_answers.parse_queue(records, options.cluster, observed_at)
            tables += controller.of_queue(records, self._context(observed_at))
        else:
            tables = json_answers.parse_nodes(records, options.cluster, observed_at)
        yield from self._listed(tables, broken_off, digest)

    def _whole(self, kind: str, blocks: list[delimited.Block]) -> Iterator[Batch]:
        digest = self._digest("\n".join(block.digest for block in blocks))
        broken_off = [reject for block in blocks for reject in block.rejects]
        yield from self._listed(self._parse(kind, delimited.text_of(blocks)), broken_off, digest)

    def _listed(
        self, tables: Sequence[Parsed], broken_off: list[Reject], digest: str
    ) -> Iterator[Batch]:
        """Yield the tables of a listing; of those that few listings have only one with rows."""
        for parsed in tables:
            if parsed.table in SELDOM and parsed.rows.is_empty() and not parsed.rejects:
                continue
            yield self._batch(replace(parsed, rejects=[*parsed.rejects, *broken_off]), digest)
            broken_off = []

    def _parse(self, kind: str, text: str) -> list[Parsed]:
        cluster, zone = self.options.cluster, self.options.zone
        observed_at = self.options.observed_at
        if kind == "jobs":
            holds = jobs.parse_jobs(text, cluster=cluster, zone=zone, observed_at=observed_at)
            return [*holds, *controller.of_listing(text, self._context(observed_at))]
        if kind == "ended jobs":
            return controller.of_ended(text, self._context(observed_at))
        if kind == "nodes":
            return nodes.parse_nodes(text, cluster=cluster, observed_at=observed_at)
        if kind == "sinfo":
            return nodes.parse_sinfo(text, cluster=cluster, observed_at=observed_at)
        if kind == "scontrol reservations":
            return events.parse_reservations(text, cluster=cluster, zone=zone)
        if kind == "events":
            return events.parse_events(text, cluster=cluster, zone=zone)
        return events.parse_reservation_rows(
            text, cluster=cluster, zone=zone, observed_at=observed_at
        )

    def _context(self, observed_at: datetime | None) -> slurm_accounting.Accounting:
        return slurm_accounting.Accounting(
            cluster=self.options.cluster, zone=self.options.zone, observed_at=observed_at
        )

    def _digest(self, content: str, *meaning: str) -> str:
        """Return a digest of the content and of the options that change what it means."""
        options = self.options
        said = (*meaning, options.cluster, options.zone, options.observed_at)
        return files.digest_of(content, *said)

    def _batch(self, parsed: Parsed, digest: str) -> Batch:
        return parsed.batch(source=self.name, origin=str(self.path), digest=digest)


def kind_of(head: bytes) -> str | None:
    """Return which text of Slurm begins with these bytes, None for none that is read here."""
    if head.lstrip()[:1] == b"{":
        return json_answers.kind_of(head)
    text = head.decode("utf-8", errors="replace")
    lines = [line for line in text.split("\n")[:SINFO_SAMPLE_LINES] if line.strip()]
    if not lines:
        return None
    starts = {
        "JobId=": "jobs",
        "NodeName=": "nodes",
        "ReservationName=": "scontrol reservations",
        NO_RESERVATIONS: "scontrol reservations",
    }
    if found := next((kind for start, kind in starts.items() if lines[0].startswith(start)), None):
        is_configuration = found == "nodes" and " CPUAlloc=" not in text
        if found == "jobs" and any(map(controller.ENDED.fullmatch, lines)):
            return "ended jobs"
        return None if is_configuration else found
    header = delimited.header_of(lines[0])
    if header is not None:
        if {"JobID", "JobIDRaw"} & set(header.names) and "State" in header.names:
            is_list_of_fields = header.delimiter == "," and len(lines) == 1  # made of `sacct -e`
            return None if is_list_of_fields else "accounting"
        if events.is_events(header.names):
            return "events"
        if events.is_reservations(header.names):
            return "reservations"
    cells = [line.split("|") for line in lines]
    if slurm_accounting.is_xdmod_row(cells[0]):
        return "accounting"
    if nodes.sinfo_header([cell.strip() for cell in cells[0]]) is not None:
        return "sinfo"
    whole = cells if len(head) < files.HEAD_BYTES or head.endswith(b"\n") else cells[:-1]
    return "sinfo" if whole and nodes.sinfo_columns(whole) is not None else None


def _header(data: bytes) -> delimited.Header:
    """Return the header of accounting rows; Open XDMoD's rows have none and one is known."""
    first = (
        data[: files.HEAD_BYTES].decode("utf-8", errors="replace").lstrip("\n").split("\n", 1)[0]
    )
    if slurm_accounting.is_xdmod_row(first.split("|")):
        return delimited.Header(fields.XDMOD, "|", "", is_last_free=True)
    header = delimited.first_header(data)
    return replace(header, is_last_free=slurm_accounting.is_last_free(header.names))
