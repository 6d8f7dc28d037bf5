"""Failures that no framework reports: the lines with which programs and their launchers end.

FileNotFoundError: [Errno 2] No such file or directory: '/data/train.json'
srun: error: node004: task 27: Segmentation fault (core dumped)

Such a line rarely has a time: without a collector's label it gets the last time in the log before
it, else the one at which the log was read out, and says so. A program may handle an error and go
on; a failure before a later step is therefore no cause (intermediate.int_reported_failures).
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from goodput_ingest.sources.job_logs.events import Event
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


class ErrorText:
    """Failures by the text of a line."""

    name: ClassVar[str] = "error-text"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"Traceback \(most recent call last\):")
    hints: ClassVar[tuple[str, ...]] = HINTS
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Begin with no failure seen."""
        self.seen: dict[str, datetime] = {}

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure of a line."""
        text = line.text
        if ELSEWHERE.search(text) or (kind := kind_of(text)) is None:
            return None
        extra: dict[str, Any] = {} if line.rank is None else {"rank": line.rank}
        at = line.at
        if at is None and moments.last is not None:
            at, extra["at"] = moments.last + AFTER, "the last time before it"
        elif at is None:
            at, extra["at"] = moments.observed_at, "when the log was read out"
        if at is not None:
            before = self.seen.get(kind)
            if before is not None and before <= at < before + REPEATED:
                return ()
            self.seen[kind] = at
        msg = text.strip()[:MSG_MAX_CHARS]
        return (Event("failure", at, kind=kind, msg=msg, extra=extra),)
