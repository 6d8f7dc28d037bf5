"""Failures that no framework reports: the lines with which programs and their launchers end.

FileNotFoundError: [Errno 2] No such file or directory: '/data/train.json'
srun: error: node004: task 27: Segmentation fault (core dumped)

The last line of a traceback is one whatever its exception is called, and none where Python says
that it ignores the exception, or `logging` that it could not write.

Such a line rarely has a time: without a collector's label it gets the last time in the log before
it, else the first one after it, else the one at which the log was read out, and says so. A program
may handle an error and go on; a failure before a later step is therefore no cause
(intermediate.int_reported_failures).
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from goodput_ingest.sources.job_logs.events import READ_OUT, Event
from goodput_ingest.sources.job_logs.failure_kinds import HINTS, kind_of
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

MSG_MAX_CHARS = 300
REPEATED = timedelta(minutes=1)  # a program that retries prints its error again and again
AFTER = timedelta(microseconds=1)  # of events of one moment, a failure comes before a start
# a torchrun block, and what the scheduler says: other formats take them
ELSEWHERE = re.compile(
    r"^\s*(?:time|host|rank|exitcode|error_file|traceback)\s*: |\*\*\* (?:JOB|STEP) "
)

HEAD = re.compile(r"(?:Original )?Traceback \(most recent call last\):")
EXCEPTION = re.compile(r"(?:[A-Za-z_<][\w<>]*\.)*[A-Za-z_]\w*(?:\([\w.]{1,100}\))?(?:: |:?\s*$)")
IGNORED = re.compile(r"Exception ignored |--- Logging error ---")
# the message of such an error stands in the next line: of R, MATLAB, Rust
HEADED = re.compile(r".*:\s*$|\s*Error using ")
CHAINED = re.compile(r"During handling of the above exception|The above exception was the direct")


class ErrorText:
    """Failures by the text of a line."""

    name: ClassVar[str] = "error-text"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"Traceback \(most recent call last\):")
    hints: ClassVar[tuple[str, ...]] = (*HINTS, "Traceback (most")
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Begin with no failure seen."""
        self.seen: dict[str, datetime] = {}
        # by rank, of a traceback: whether its last line is to come, whether that is no failure
        self.tracebacks: dict[int | None, tuple[bool, bool]] = {}
        self.headed: set[int | None] = set()  # ranks whose next line says what their error was

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure of a line."""
        text = line.text
        if line.rank in self.tracebacks or IGNORED.match(text) or HEAD.match(text):
            kind = self._kind_in_traceback(line)
        else:
            kind = None if ELSEWHERE.search(text) else kind_of(text)
        if kind == "exception" and HEADED.match(text):
            self.headed.add(line.rank)
            self.tracebacks.setdefault(line.rank, (False, False))  # so that the next line is read
        if kind is None:
            return None
        extra: dict[str, Any] = {} if line.rank is None else {"rank": line.rank}
        at = line.at
        if at is None and moments.last is not None:
            at, extra["at"] = moments.last + AFTER, "the last time before it"
        elif at is None:
            at, extra["at"] = moments.observed_at, READ_OUT
        if at is not None:
            before = self.seen.get(kind)
            if before is not None and before <= at < before + REPEATED:
                return ()
            self.seen[kind] = at
        msg = text.strip()[:MSG_MAX_CHARS]
        return (Event("failure", at, kind=kind, msg=msg, extra=extra),)

    def _kind_in_traceback(self, line: Line) -> str | None:
        """Return the failure kind of a traceback's last line, and that of the line after it."""
        text = line.text
        is_open, is_ignored = self.tracebacks.pop(line.rank, (False, False))
        if IGNORED.match(text) or HEAD.match(text) or (is_ignored and CHAINED.match(text)):
            is_ignored = HEAD.match(text) is None or (is_open and is_ignored)
            self.tracebacks[line.rank] = True, is_ignored
            return None
        if is_open and (text[0].isspace() or is_ignored):
            self.tracebacks[line.rank] = text[0].isspace(), is_ignored
            return None
        is_last = is_open and EXCEPTION.match(text) is not None
        if line.rank in self.headed:
            self.headed.discard(line.rank)
            text = f"Error: {text.strip()}"
        return kind_of(text, "exception" if is_last else None)
