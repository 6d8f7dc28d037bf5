"""Restart cycles of NVIDIA Resiliency Extension inside one job (shared_utils/profiling.py).

  - Cycle: 1 Event: failure_detected Node: node004 Rank: 27 Time: 2026-08-20 14:31:02.118 UTC

From the failure to the start of the new workers the gang does nothing; with `worker_start_started`
its next life begins. Every node logs its own events; the first of a cycle counts.
"""

import re
from collections.abc import Iterable
from typing import ClassVar

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

CYCLE = re.compile(
    r"- Cycle: (?P<cycle>\d{1,9}) Event: (?P<event>\w{1,60}) Node: (?P<node>\S{1,255}) "
    r"Rank: (?P<rank>\S{1,12}) Time: (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) UTC\b"
)
STARTS, FAILS = "worker_start_started", "failure_detected"


class Nvrx:
    """Failures that the extension found, and the lives of the gang that it began."""

    name: ClassVar[str] = "nvrx"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"- Cycle: \d+ Event: \w+ Node: ")
    hints: ClassVar[tuple[str, ...]] = ("- Cycle: ",)
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Begin before the first cycle."""
        self.seen: dict[str, int] = {STARTS: -1, FAILS: -1}

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the event of a line, if it is the first of its cycle."""
        found = CYCLE.search(line.text)
        if found is None:
            return None
        at = moments.keep(json_lines.moment({"at": found["at"] + "Z"}, "at"))
        name, cycle = found["event"], int(found["cycle"])
        if name not in self.seen or cycle <= self.seen[name]:
            return ()
        self.seen[name] = cycle
        extra = {"cycle": cycle, "host": found["node"], "rank": found["rank"]}
        if name == STARTS:
            return (Event("job.start", at, extra=extra),)
        msg = f"NVRx cycle {cycle}: failure detected on {found['node']}, rank {found['rank']}"
        return (Event("failure", at, kind="other", msg=msg, extra=extra),)
