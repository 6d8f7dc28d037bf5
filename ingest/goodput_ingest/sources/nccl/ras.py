"""Answers of NCCL RAS (`VERBOSE STATUS`, since NCCL 2.24): where each rank of a communicator runs.

And how many operations it has launched: a rank whose count stays behind holds up the others. Read
are answers one after another in one file, each as JSON (NCCL 2.28.7 and later), as the text that
`ncclras` prints, or wrapped in a JSON line {"t": <epoch s>, "reply": <either>}. Only the last says
in UTC when it was asked: JSON carries local time (`--timezone`), text none (`--observed-at`).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.timestamps import instants
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_ingest.sources.nccl import ras_answers
from goodput_ingest.sources.nccl.ras_answers import Communicator
from goodput_queries.errors import IngestError

TEXT_START = "NCCL version "
TEXT_MARKS = (b"\nJob summary\n", b"\nCommunicators...")
JSON_MARK = b"communicators_count"  # in a wrapped answer its quotes are escaped
ANSWERS_PER_BATCH = 500
ANSWER_MAX_CHARS = (
    64 * 1024 * 1024
)  # 100,000 ranks in ten communicators have 300 MB: asked too much

COUNTS = raw_tables.columns("comm_counts")
RANK_MAP = raw_tables.columns("rank_map", "comm_name", "local_rank", "pci_bus_id", "gpu_uuid")


@dataclass(frozen=True)
class Answer:
    """The lines of one answer, the number of the first, and when a collector took that in."""

    first_line: int
    lines: list[str]
    at: datetime | None


@dataclass
class Rows:
    """Rows of some answers by raw table, and the answers that could not be parsed."""

    counts: list[tuple[Any, ...]] = field(default_factory=list)
    places: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)


class NcclRas(RecordedFile):
    """Answers of a job's RAS thread, which is polled."""

    name: ClassVar[str] = "nccl-ras"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the file begins with an answer of RAS, in any of its forms."""
        start = json_lines.without_stamps(head.lstrip())
        if start.startswith(b"{"):
            first = start.split(b"\n", 1)[0]
            is_wrapped = b'"reply"' in first and (JSON_MARK in first or b"NCCL version" in first)
            return is_wrapped or (b'"nccl_version"' in start[:200] and JSON_MARK in start[:2000])
        text = start.replace(b"\r\n", b"\n")
        return text.startswith(TEXT_START.encode()) and all(mark in text for mark in TEXT_MARKS)

    def extract(self) -> Iterator[Batch]:
        """Yield counts and the rank map, some hundred answers at a time."""
        head = files.head(self.path)
        if head.strip() and not self.recognises(self.path, head):
            raise IngestError(
                f"{self.path}: this is not an answer of NCCL RAS; expected what "
                '`ncclras -v` prints, its JSON, or lines {"t": ..., "reply": ...}.'
            )
        held: list[Answer] = []
        for item in self._answers():
            if isinstance(item, Reject):
                yield from self._batches(held, [item])
                held = []
                continue
            held.append(item)
            if len(held) >= ANSWERS_PER_BATCH or sum(len(a.lines) for a in held) > 200_000:
                yield from self._batches(held, [])
                held = []
        if held:
            yield from self._batches(held, [])

    def _answers(self) -> Iterator[Answer | Reject]:
        """Yield answers as they stand in the file; at most one of them is held."""
        first, lines, chars = 1, list[str](), 0
        at: datetime | None = None
        for part in files.parts(self.path):
            for number, text in enumerate(part.lines, part.first_line):
                stamp, line = json_lines.split_stamp(text)
                starts = line.startswith((TEXT_START, "{"))
                if (starts or chars > ANSWER_MAX_CHARS) and any(lines):
                    yield Answer(first, lines, at)
                    first, lines, chars = number, [], 0
                at = stamp if not lines else at or stamp
                lines.append(line)
                chars += len(line)
            yield from part.cut
        if any(lines):
            yield Answer(first, lines, at)

    def _batches(self, answers: list[Answer], rejects: list[Reject]) -> Iterator[Batch]:
        rows = Rows(rejects=rejects)
        text = hashlib.sha256(repr((self.options, rejects)).encode("utf-8", "replace"))
        for answer in answers:
            text.update("\n".join(answer.lines).encode("utf-8", "replace"))
            try:
                self._read(answer, rows)
            except FieldError as error:
                content = json_lines.printable("\n".join(answer.lines)[:500], 500)
                rows.rejects.append(Reject(answer.first_line, str(error), content))
        digest = text.hexdigest()[: files.DIGEST_CHARS]
        for table, schema, found, rejected in (
            ("comm_counts", COUNTS, rows.counts, rows.rejects),
            ("rank_map", RANK_MAP, list(rows.places.values()), []),
        ):
            frame = pl.DataFrame(found, schema=schema, orient="row")
            yield Batch(table, frame, self.name, str(self.path), digest, rejected)

    def _read(self, answer: Answer, rows: Rows) -> None:
        at, found = self._understood(answer)
        for comm in found:
            key = (self.name, self.options.cluster, comm.comm_id)
            for (operation, launched), group in sorted(comm.launched.items()):
                count = (operation, launched, group.rank_count, group.ranks)
                rows.counts.append((*key, comm.size, at, *count))
            for place in comm.places:
                where = (place.node, place.pid, place.gpu_index, at)
                identity = (comm.comm_id, place.rank, place.node, place.pid)
                known = rows.places.get(identity)
                if known is None or place.gpu_index is not None or known[-2] is None:
                    rows.places[identity] = (*key, place.rank, comm.size, *where)

    def _understood(self, answer: Answer) -> tuple[datetime, list[Communicator]]:
        """Return when RAS was asked, naive UTC, and its answer."""
        text = "\n".join(answer.lines).strip()
        if text.startswith("{"):
            record = ras_answers.of_json(text)
            if "reply" not in record:
                return self._local(record, answer.at), ras_answers.communicators(record)
            at, reply = json_lines.moment(record, "t"), record["reply"]
            if isinstance(reply, str) and reply.lstrip().startswith("{"):
                reply = ras_answers.of_json(reply)
            if isinstance(reply, dict):
                return at, ras_answers.communicators(reply)
            if not isinstance(reply, str):
                raise FieldError(f"reply is {json_lines.kind(reply)}, expected an answer")
            return at, ras_answers.complaints(reply.splitlines())
        if not text.startswith(TEXT_START):
            raise FieldError("these lines are not an answer of RAS")
        asked_at = answer.at or self.options.observed_at
        if asked_at is None:
            raise IngestError(
                f"{self.path}: the text of RAS does not say when it was asked. Give the time with "
                '--observed-at, or write lines {"t": <epoch seconds>, "reply": <text>}.'
            )
        return asked_at, ras_answers.complaints(answer.lines)

    def _local(self, record: dict[str, Any], at: datetime | None) -> datetime:
        """Return the answer's own time, which is its host's local time, in UTC.

        at: of the collector, for an answer whose zone is not known
        """
        if self.options.observed_at is not None:
            return self.options.observed_at
        if self.options.zone is None:
            if at is not None:
                return at
            raise IngestError(
                f"{self.path}: RAS writes local time. Say which with --timezone (as "
                "`--timezone UTC`), or when it was asked with --observed-at."
            )
        said = pl.Series([json_lines.text(record, "timestamp")], dtype=pl.String)
        moments, problems = instants(said, self.options.zone)
        if moments[0] is None:
            raise FieldError(problems[0] or "timestamp is missing")
        return cast("datetime", moments[0])
