"""NCCL's watchdog in PyTorch (ProcessGroupNCCL.cpp), which ends a gang that hangs.

[rank3]:[E820 14:41:09.114302112 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: ...

The stamp has no year, and its month is not padded: of `E1118` the last two digits are the day. The
hang began as long before the line as the operation ran. All ranks that wait print it; the one that
is missing is the suspect.
"""  # noqa: E501 -- the line as it is printed

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

TIMEOUT = re.compile(
    r"\[[Rr]ank ?(?P<rank>\d{1,7})\].*?WorkNCCL\(SeqNum=(?P<seq>\d{1,18}), OpType=(?P<op>\w{1,60}),"
    r".*?Timeout\(ms\)=(?P<timeout>\d{1,15})\) ran for (?P<ran>\d{1,15}) milliseconds"
)
STAMP = re.compile(r"\[[EWI](?P<month>\d{1,2})(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d{1,9}) ")


class NcclWatchdog:
    """Collectives that timed out."""

    name: ClassVar[str] = "nccl-watchdog"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"Watchdog caught collective operation timeout"
    )
    hints: ClassVar[tuple[str, ...]] = ("Watchdog caught collective operation timeout",)
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Keep nothing: each line stands for itself."""

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure of a line."""
        found = TIMEOUT.search(line.text)
        if found is None:
            return None
        at, stamp = line.at, STAMP.search(line.text)
        if at is None and stamp is not None:
            clock = stamp["clock"][: len("14:41:09.114302")]
            at = moments.without_year(int(stamp["month"]), int(stamp["day"]), clock)
        extra = {
            "rank": int(found["rank"]),
            "sequence": int(found["seq"]),
            "timeout_ms": int(found["timeout"]),
            "ran_ms": int(found["ran"]),
        }
        msg = f"{found['op']} seq {found['seq']} ran {found['ran']} ms on rank {found['rank']}"
        if at is not None and extra["ran_ms"] < DURATION_MAX_S * 1000:
            began = at - timedelta(milliseconds=extra["ran_ms"])
            return (
                Event(
                    "failure",
                    at,
                    kind="nccl_timeout",
                    msg=msg,
                    extra={**extra, "hang_began_at": f"{began.isoformat()}Z"},
                ),
            )
        return (Event("failure", at, kind="nccl_timeout", msg=msg, extra=extra),)
