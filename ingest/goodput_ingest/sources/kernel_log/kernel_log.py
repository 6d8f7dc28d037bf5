"""Kernel logs: Xid and SXid lines of NVIDIA's drivers, GPUs that fell off the bus, OOM kills.

A message may go over several lines: those that are indented belong to the line before, which has
the time and the node. Read are `dmesg -T`, `dmesg --time-format iso`, journalctl (short, short-iso,
short-unix, json) and syslog files. Repeats of a line are kept: joining them into incidents is the
ledger's job.
"""

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats import files, raw_tables, syslog
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_ingest.sources.kernel_log.continued import Continued, Message
from goodput_ingest.sources.kernel_log.lines import MESSAGE_MAX_CHARS, Line, parsed
from goodput_ingest.sources.kernel_log.messages import (
    LOOKS_LIKE_OOM_KILL,
    LOOKS_LIKE_XID,
    NOTICE,
    OOM_KILL,
    Finding,
    finding,
)
from goodput_queries.errors import IngestError

SOURCE = "kernel-log"
LINES_OF_A_NOTICE = 3  # "The NVIDIA GPU ..." and "fallen off the bus" stand on lines this near
NEWEST_SLACK = timedelta(days=1)  # a line without a year may be this much after the collection
# counted from boot: they drift over a suspend; and they name no node
APPROXIMATE = ("dmesg_t", "dmesg_iso")
UNFINISHED = re.compile(r"[:,]\s*$")  # the end of a line that another one goes on with

# its name, before what it says; a cut time is none
PROGRAM = re.compile(r"(?:^|\s)(?!\d|times: \[)[\w./-]+(?:\[\d+\])?: ")
WORTH_A_LOOK = re.compile(r'Xid|NVRM|"MESSAGE"\s*:\s*\[')
STEP = re.compile(rb"(?i)\b(?:step|iter(?:ation)?|epoch)s?\b\W{0,4}\d")
OF_KERNEL = re.compile(rb'"(?:SYSLOG_IDENTIFIER|_TRANSPORT)"\s*:\s*"kernel"')
NO_TIME = "the line has no timestamp"

SCHEMA = raw_tables.columns("gpu_events")
NODE_EVENTS = raw_tables.columns("node_events")


class KernelLog(RecordedFile):
    """The kernel log of a node (dmesg) or of several (journal, syslog)."""

    name: ClassVar[str] = SOURCE
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = False  # a notice goes over a few lines

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, its cluster, and node, zone and year where lines carry none."""
        super().__init__(path, options)
        self._rows = KernelRows(str(path), options)
        self._of_amd = 0  # lines of AMD's driver

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the first lines are a kernel's, in one of the forms that are read."""
        lines = syslog.first_lines(head)
        if not lines:
            return False
        found = list(_lines(head))
        if json_lines.unlabelled(lines[0]).startswith("{"):
            is_journal = b'"__REALTIME_TIMESTAMP"' in head and OF_KERNEL.search(head) is not None
            return is_journal or any(map(_is_read, found))
        if any(line is not None and line.node is not None for line in found):
            # else a service's, with its steps and lines of the kernel
            return not (syslog.is_of_a_program(head) and STEP.search(head))
        return 2 * sum(map(_is_of_dmesg, found)) > len(lines) or any(map(_is_read, found))

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.gpu_events` and `raw.node_events`, part by part; often there are no rows."""
        head = files.head(self.path)
        if head.strip() and not self.recognises(self.path, head) and not _is_stamped(head):
            raise IngestError(
                f"{self.path}: this is not a kernel log; expected `dmesg -T`, "
                "`journalctl -k -o short-iso-precise` or `journalctl -k -o json`."
            )
        yield from self.of_any_log()

    def of_any_log(self) -> Iterator[Batch]:
        """Yield the kernel's events in a log of whatever programs."""
        for part in files.parts(self.path):
            yield from self.read(part)
        if (cut := self._rows.end()) is not None:
            yield cut

    @property
    def unread(self) -> str:
        """Return what looks like errors of GPUs and is none that is read."""
        are = "lines" if self._of_amd > 1 else "line"
        lines = f"; {self._of_amd:,} {are} of AMD's driver (amdgpu) are not read"
        return lines if self._of_amd else ""

    def read(self, part: files.Part) -> Iterator[Batch]:
        """Yield the events of the next lines."""
        self._of_amd += sum("amdgpu" in line for line in part.lines)
        yield self._rows.batch(part, is_growing=True)
        if (killed := self._rows.oom_kills(part)) is not None:
            yield killed


class KernelRows:
    """From lines in their order to rows of `raw.gpu_events`, whether from a file or live."""

    def __init__(self, origin: str, options: ReadOptions) -> None:
        """Take where the lines come from, and what they do not say of themselves."""
        self.origin = origin
        self.options = options
        self._notice: tuple[int, str | None, str] | None = None  # line, node, PCI address
        self._continued = Continued()
        self._unread: Reject | None = None  # a last message that the next lines may complete

    def batch(self, part: files.Part, *, is_growing: bool = False) -> Batch:
        """Return the events of some consecutive lines; raises IngestError for what is needed.

        is_growing: the next part may go on with the last message.
        """
        meaning = (*self._said(), self._notice, self._continued.begun, self._unread)
        key = files.digest(part, "gpu_events", *meaning)
        rows: list[tuple[Any, ...]] = []
        unread, self._unread = self._unread, None
        rejects: list[Reject] = []
        for message in self._continued.messages(part, WORTH_A_LOOK):
            if unread is not None and unread.line == message.number:
                unread = None
            try:
                row = self._row(message)
            except FieldError as error:
                content = json_lines.printable(message.text, 500)
                reject = Reject(message.number, str(error), content)
                if is_growing and message.is_last and UNFINISHED.search(message.text):
                    self._unread = reject
                else:
                    rejects.append(reject)
                continue
            if row is not None:
                rows.append(row)
        if unread is not None:
            rejects.insert(0, unread)
        rejects += part.cut
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        return Batch("gpu_events", frame, SOURCE, self.origin, key, rejects)

    def _said(self) -> tuple[object, ...]:
        options = self.options
        return options.cluster, options.zone, options.observed_at, options.node

    def end(self) -> Batch | None:
        """Return the last message of a file as rejected where it could not be read; else None."""
        if self._unread is None:
            return None
        frame = pl.DataFrame([], schema=SCHEMA, orient="row")
        key = files.digest(files.Part(self._unread.line or 0, b"", ""), self.origin, self._unread)
        return Batch("gpu_events", frame, SOURCE, self.origin, key, [self._unread])

    def oom_kills(self, part: files.Part) -> Batch | None:
        """Return the processes that the out-of-memory killer ended; None: there are none."""
        rows: list[tuple[Any, ...]] = []
        rejects: list[Reject] = []
        for number, text in enumerate(part.lines, part.first_line):
            if (like := LOOKS_LIKE_OOM_KILL.search(text)) is None:
                continue
            try:
                if (line := parsed(text)) is None:
                    if _is_of_kernel(text[: like.start()]):
                        raise FieldError(NO_TIME)
                    continue  # a program that quotes the kernel
                if (killed := OOM_KILL.search(line.message)) is None:
                    raise FieldError("the line has an out-of-memory kill in an unknown form")
                if (node := line.node or self.options.node) is None:
                    raise FieldError("the line does not name its node; say it with --node")
                name = json_lines.printable(killed["name"], 100)
                message = json_lines.printable(line.message, MESSAGE_MAX_CHARS)
                of = (SOURCE, self.options.cluster, node, self._moment(line))
                rows.append((*of, "oom_kill", killed["pid"], name, message))
            except FieldError as error:
                rejects.append(Reject(number, str(error), json_lines.printable(text, 500)))
        if not rows and not rejects:
            return None
        key = files.digest(part, "node_events", *self._said())
        frame = pl.DataFrame(rows, schema=NODE_EVENTS, orient="row")
        return Batch("node_events", frame, SOURCE, self.origin, key, rejects)

    def _row(self, message: Message) -> tuple[Any, ...] | None:
        line = parsed(text := message.text)
        if line is None:
            said = text[:MESSAGE_MAX_CHARS]
            is_event = finding(said, None) is not None or LOOKS_LIKE_XID.search(said)
            if is_event and _is_of_kernel(said.partition("NVRM:")[0]):
                raise FieldError(NO_TIME)
            return None
        found = self._find(message.number, line)
        if found is None:
            if LOOKS_LIKE_XID.search(line.message):
                raise FieldError("the line has an Xid in an unknown format")
            return None
        at = self._moment(line)
        node = line.node or self.options.node
        if node is None and line.form in APPROXIMATE:
            raise IngestError(
                f"{self.origin}: the lines do not name their node. Name it with --node, "
                "a file a node, or write the log with `journalctl -k -o short-iso-precise`."
            )
        return (
            SOURCE,
            self.options.cluster,
            node,
            None,
            pci_bus_id(found.pci),
            at,
            "approximate" if line.form in APPROXIMATE else "exact",
            found.kind,
            found.code,
            found.pid,
            found.process_name,
            json_lines.printable(self._shown(message), MESSAGE_MAX_CHARS),
        )

    @staticmethod
    def _shown(message: Message) -> str:
        """Return as much of a message as has its event: a later poll may have further lines."""
        read = (parsed(text) for text in message.growing())
        return next(line.message for line in read if line and finding(line.message, None))

    def _find(self, number: int, line: Line) -> Finding | None:
        """Return what the line says; remember the GPU of a notice that goes over several lines."""
        near = self._notice
        pci = None
        if near and number - near[0] < LINES_OF_A_NOTICE and near[1] == line.node:
            pci = near[2]
        found = finding(line.message, pci)
        if found is None and (notice := NOTICE.search(line.message)):
            self._notice = (number, line.node, notice["pci"])
        return found

    def _moment(self, line: Line) -> datetime:
        """Return when the line was written, naive UTC; raises IngestError for what is needed."""
        if line.form == "since_boot":
            raise IngestError(
                f"{self.origin}: times count from boot, which is not known here. Write the log "
                "with `dmesg -T`, or better with `journalctl -k -o short-iso-precise`."
            )
        if line.form == "unix":
            return json_lines.moment({"ts": float(line.when)}, "ts")
        try:
            clock = self._clock(line)
        except (ValueError, OverflowError):
            raise FieldError(f"{line.when} is not a valid date") from None
        try:
            if clock.tzinfo is not None:
                return json_lines.in_utc(clock)
            return _in_utc(clock, self._zone(line))
        except FieldError as error:
            raise FieldError(f"{line.when} {error}") from None

    def _clock(self, line: Line) -> datetime:
        """Return the time as the line writes it, with its offset where it has one."""
        if line.form == "dmesg_t":
            month, day, time, year = line.when.split()
            return _calendar(int(year), month, day, time)
        if line.form == "yearless":
            month, day, time = line.when.split()
            return self._with_year(month, day, time, self._zone(line))
        clock = datetime.fromisoformat(line.when.replace(",", "."))
        return clock.replace(tzinfo=UTC) if line.form == "full" else clock

    def _with_year(self, month: str, day: str, time: str, zone: ZoneInfo) -> datetime:
        """Return the latest such day that is not after the log was collected."""
        seen = self.options.observed_at
        if seen is None:
            raise IngestError(
                f"{self.origin}: times carry no year. Say with --observed-at when the log was "
                "collected, or write it with `journalctl -k -o short-iso-precise`."
            )
        latest = (seen.replace(tzinfo=UTC) + NEWEST_SLACK).astimezone(zone).replace(tzinfo=None)
        for year in range(latest.year, latest.year - 9, -1):  # 29 February may be 8 years away
            try:
                clock = _calendar(year, month, day, time)
            except ValueError:
                continue
            if clock <= latest:
                return clock
        raise ValueError(month)

    def _zone(self, line: Line) -> ZoneInfo:
        if self.options.zone is None:
            raise IngestError(
                f"{self.origin}: time {line.when} carries no offset from UTC. Name its time zone "
                "with --timezone (such as Europe/Berlin), or write the log with "
                "`journalctl -k -o short-iso-precise`."
            )
        return self.options.zone


def _lines(head: bytes) -> Iterator[Line | None]:
    """Yield the first lines of a kernel, each whole."""
    for text in head.decode("utf-8", "replace").splitlines()[: syslog.HEAD_LINES]:
        with contextlib.suppress(FieldError):
            yield parsed(text)


def _is_of_dmesg(line: Line | None) -> bool:
    """Say whether only dmesg writes so: its ISO times have a comma, those of collectors a point."""
    return line is not None and line.node is None and (line.form != "dmesg_iso" or "," in line.when)


def _is_read(line: Line | None) -> bool:
    """Say whether the line is a message of the kernel that is read."""
    if line is None:
        return False
    return finding(line.message, None) is not None or OOM_KILL.search(line.message) is not None


def _is_of_kernel(before: str) -> bool:
    """Say whether no program but the kernel is named in what stands before its message."""
    is_entry = json_lines.unlabelled(before).startswith("{")
    return not is_entry and PROGRAM.search(before.replace("kernel: ", "")) is None


def _is_stamped(head: bytes) -> bool:
    """Say whether some line carries a time in a form that is read: any program's log does."""
    return any(map(syslog.form_of, syslog.first_lines(head)))


def _calendar(year: int, month: str, day: str, time: str) -> datetime:
    number = syslog.MONTHS.index(month) + 1
    return datetime.fromisoformat(f"{year:04}-{number:02}-{int(day):02}T{time}")


def _in_utc(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return a local time in UTC; one that a change of clocks makes twice or never is refused."""
    early, late = (json_lines.in_utc(clock.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if early != late:
        is_twice = early.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) == clock
        what = "comes twice" if is_twice else "does not exist"
        raise FieldError(f"{what} in {zone.key} (clocks change)")
    return early
