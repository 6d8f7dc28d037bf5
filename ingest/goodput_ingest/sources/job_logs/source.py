"""Job logs: parses the formats of all known frameworks in parallel into events of one gang.

A log belongs to one gang: a line of one rank applies to all, so events have no rank (which means
the gang) but where the file's name has one, as of the ranks of a job a log each. `extra.log` names
the log format. Steps come from the first format with steps, failures from every format. Each life
of the processes in a log starts with its own `job.start`.

A line without a time cannot be placed, and one that has only half of a known form cannot be read:
they are rejected, a bounded number of each reason. A log without any time is refused.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, syslog
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines, mllog_lines
from goodput_ingest.formats.json_text.event_lines import SCHEMA
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_ingest.sources.job_logs import profile_draft
from goodput_ingest.sources.job_logs.formats import formats
from goodput_ingest.sources.job_logs.lines import uncoloured
from goodput_ingest.sources.job_logs.pods import is_newest_first, of_pods, unwrapped
from goodput_ingest.sources.job_logs.reader import LogReader
from goodput_ingest.sources.job_logs.run_name import RunName, is_of_one_process, rank_of
from goodput_ingest.sources.job_logs.world_size import WORLD_SIZE
from goodput_queries.errors import IngestError

PREAMBLE_BYTES = files.HEAD_BYTES // 2  # a shorter file has been seen whole
BEGINNING_BYTES = 4 * 1024 * 1024
SHOWN_MAX_CHARS = 80
KERNEL = re.compile(rb'"(?:SYSLOG_IDENTIFIER|_TRANSPORT)" ?: ?"kernel"')  # a journal of a node
NEWEST_FIRST = (
    "its newest lines come first. Write the oldest first, as `logcli query --forward` does."
)
OF_ONE = (
    "A log of a single node or pod counts as a run of one GPU, however many processes it prints. "
    "With `--run-id NAME` that of one of them counts for the whole job."
)


class JobLog(RecordedFile):
    """One log file of a job, by whichever frameworks wrote into it."""

    name: ClassVar[str] = "job-log"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, its cluster, the zone of its local times and when it was read out."""
        super().__init__(path, options)
        self._logs: dict[str, tuple[LogReader, RunName]] = {}  # by pod; '': of no pod
        self._rank = rank_of(path.absolute())
        self._log_of("")
        self._so_far = ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether a framework's marks stand in plain text, behind a long preamble, too."""
        if KERNEL.search(head):
            return False
        head = unwrapped(head)
        if b"\x00" in head or json_lines.are_most(head) or mllog_lines.IN_HEAD.search(head):
            return False
        if syslog.is_of_nodes(head):  # in which any program's traceback may stand
            return syslog.is_of_a_program(head) and JobLog.has_steps(head)
        return _is_marked(head) or (len(head) >= PREAMBLE_BYTES and _is_marked(_beginning(path)))

    @staticmethod
    def has_steps(head: bytes) -> bool:
        """Say whether a text bears the marks of a format that reads steps."""
        return any(one.is_in(uncoloured(head)) for one in formats() if one.has_steps)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part.

        Raises IngestError for a log without events, or without events that have a time, and
        ZoneNeededError for local times without a configured zone.
        """
        for part in files.parts(self.path):
            yield from self.read(part)
        readers = [reader for reader, _ in self._logs.values()]
        if rejects := [reject for reader in readers for reject in reader.rest()]:
            yield self._batch("", [], rejects, files.digest_of(f"the end of {self._so_far}"))
        if not any(reader.placed for reader in readers):
            reader = max(readers, key=lambda one: (one.without_moment, len(one.first_problem)))
            raise IngestError(
                f"{self.path}: the log has events ({reader.without_moment} lines) but no times, "
                f"such as {reader.first_lack}. Write the log with timestamps (as kubectl logs "
                "--timestamps does), or use job events. Of a log that only shows an error, say "
                "when it was read out (--observed-at)."
                if reader.without_moment
                else f"{self.path}: {reader.first_problem}."
                if reader.first_problem
                else f"{self.path}: no line has the log format of a known framework{self.unread}."
            )

    @property
    def is_inferred(self) -> bool:
        """Say whether its steps are those of a loop of no known trainer."""
        plain = {one.name for one in formats() if one.is_fallback}
        return any(reader.steps_of in plain for reader, _ in self._logs.values())

    @property
    def unread(self) -> str:
        """Say of a log without steps what its steps lack, or which line looks like one."""
        readers = [reader for reader, _ in self._logs.values()]
        found = next((one.plain_step for one in readers if one.plain_step is not None), None)
        if any(one.steps_of is not None for one in readers):
            return ""
        if any(one.has_epochs for one in readers):
            return (
                "; the dictionaries of the Hugging Face Trainer have an epoch and no step, and the "
                "lines `Num Epochs = N` and `Total optimization steps = N` before them are missing"
            )
        undated = next((line for one in readers if (line := one.first_waiting) is not None), None)
        if (line := found or undated) is None:
            return ""
        shown = json_lines.printable(line.text.strip(), SHOWN_MAX_CHARS)
        if found is None:
            return (
                f"; line {line.number} ({shown}) has no time; that of the next checkpoint dates it"
            )
        return (
            f"; line {found.number} ({shown}) looks like a training step of no known format: "
            "`goodput profile draft` proposes a profile for it"
        )

    @property
    def to_draft(self) -> str:
        """Say of a log without steps that lines of its beginning may be some."""
        head = files.head(self.path).decode("utf-8", "replace")
        if not profile_draft.has_steps(head.splitlines()):
            return ""
        return (
            "; if a number that rises in it is that of the step, `goodput profile draft` proposes "
            "a profile for it"
        )

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the events of the next lines; raises ZoneNeededError as `extract` does."""
        part = replace(part, data=unwrapped(part.data))
        if part.first_line == 1 and is_newest_first(part.data[: files.HEAD_BYTES]):
            raise IngestError(f"{self.path}: {NEWEST_FIRST}")
        is_one_run = self.options.run_id is not None  # of which all pods are ranks
        logs = [("", part)] if is_one_run else of_pods(part, {*self._logs})
        for pod, own in logs:
            is_of_one = not is_one_run and (pod != "" or is_of_one_process(self.path.absolute()))
            yield from self._read(own, *self._log_of(pod), is_of_one=is_of_one)

    def _log_of(self, pod: str) -> tuple[LogReader, RunName]:
        """Return the parser of a pod's lines and the name of their run."""
        if pod not in self._logs:
            run = RunName(Path(pod) if pod else self.path.absolute(), self.options.run_id)
            self._logs[pod] = LogReader(str(self.path), self.options), run
        return self._logs[pod]

    def _read(
        self, part: Part, reader: LogReader, run: RunName, *, is_of_one: bool
    ) -> Iterator[Batch]:
        """Yield the events of a log's next lines.

        is_of_one: of several logs of a job, each of which prints how many processes the job has
        """
        options, run_id = self.options, ""
        for ordinal, (rows, rejects) in enumerate(reader.read(part)):
            if ordinal == 0:
                run_id = run.of(part, reader.first_line)
            # what a part means depends on the parts before it, and so does its digest
            said = (options.cluster, options.zone, options.observed_at, options.node)
            meaning = (run_id, self._rank, *said)
            self._so_far = files.digest(part, self._so_far, ordinal, *meaning)
            kept = [row for row in rows if not is_of_one or row.get("kind") != WORLD_SIZE]
            batch = self._batch(run_id, kept, rejects, self._so_far)
            yield replace(batch, note=OF_ONE) if len(kept) < len(rows) else batch

    def _batch(
        self, run_id: str, rows: list[dict[str, Any]], rejects: list[Reject], digest: str
    ) -> Batch:
        said = {
            "source": self.name,
            "cluster": self.options.cluster,
            "run_id": run_id,
            "rank": self._rank,
            "host": self.options.node,
        }
        data = [tuple({**said, **row}.get(name) for name in SCHEMA) for row in rows]
        return Batch(
            "job_events",
            pl.DataFrame(data, schema=SCHEMA, orient="row"),
            self.name,
            str(self.path),
            digest,
            rejects,
        )


def _is_marked(text: bytes) -> bool:
    """Say whether a log bears the marks of a format."""
    plain = uncoloured(text)
    return any(one.is_in(plain) for one in formats())


def _beginning(path: Path) -> bytes:
    """Return more of a log than its first bytes: shells trace megabytes before training starts."""
    found = b""
    with contextlib.suppress(*files.BROKEN_OFF, IngestError), files.open_bytes(path) as file:
        while len(found) < BEGINNING_BYTES and (chunk := file.read(BEGINNING_BYTES - len(found))):
            found += chunk
    return found
