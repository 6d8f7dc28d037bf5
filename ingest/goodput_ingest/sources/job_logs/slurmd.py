"""Messages of Slurm's daemon in a job's output when it ends the job.

slurmstepd: error: *** JOB 1809577 ON r6i5n1 CANCELLED AT 2021-05-23T08:46:02 DUE TO TIME LIMIT ***
"""

import re
from collections.abc import Iterable
from typing import ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

CANCELLED = re.compile(
    r"\*\*\* JOB (?P<job>\S{1,40}) ON (?P<host>\S{1,255}) "
    r"(?P<said>CANCELLED AT (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"
    r"(?: DUE TO (?P<why>[A-Z ]{1,40}))?)"
    r"(?:,[^*]{0,120})? \*\*\*"
)


class Slurmd:
    """The end that the scheduler made."""

    name: ClassVar[str] = "slurmd"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"slurmstepd: error: \*\*\* (?:JOB|STEP) ")
    hints: ClassVar[tuple[str, ...]] = ("*** JOB ",)
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Keep nothing: each line stands for itself."""

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure and the end of a line."""
        found = CANCELLED.search(line.text)
        if found is None:
            return None
        at = moments.of(line, found["at"])
        kind = "preempted" if found["why"] == "PREEMPTION" else "other"
        extra = {"host": found["host"], "job": found["job"]}
        return (
            Event("failure", at, kind=kind, msg=found["said"], extra=extra),
            Event("job.end", at),
        )
