"""The block that torchrun prints when workers fail (torch/distributed/elastic/.../errors).

Root Cause (first observed failure):
[0]:
  time      : 2026-08-20_14:31:02
  host      : node004
  rank      : 27 (local_rank: 3)
  exitcode  : -9 (pid: 51220)

Only the root cause is taken: the other failures of a gang follow from it. A negative exit code is a
signal. The time is the host's own.
"""

import re
import signal
from collections.abc import Iterable
from typing import ClassVar

from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

FIELD = re.compile(r"^\s*(time|host|rank|exitcode|error_file|traceback)\s*: (.*?)\s*$")
TIME = re.compile(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d")
EXIT_CODE = re.compile(r"(-?\d{1,9})\s+\(pid: \d+\)")
SIGNALS: dict[int, str] = {
    signal.SIGKILL: "sigkill",
    signal.SIGSEGV: "segfault",
    signal.SIGABRT: "sigabrt",
    signal.SIGBUS: "bus_error",
    signal.SIGFPE: "division_by_zero",
}
RANK = re.compile(r"(\d{1,7})\s+\(local_rank: \d+\)")


class Torchrun:
    """The root cause of a failed launch."""

    name: ClassVar[str] = "torchrun"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"Root Cause \(first observed failure\):")
    hints: ClassVar[tuple[str, ...]] = (
        "Root Cause (first observed failure)",
        "time      :",
        "host      :",
        "rank      :",
        "exitcode  :",
        "traceback :",
    )
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Begin outside a block."""
        self.said: dict[str, str] | None = None

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure after the last field of the block."""
        if "Root Cause" in line.text:
            self.said = {}
            return ()
        if self.said is None or (found := FIELD.match(line.text)) is None:
            return None
        self.said[found[1]] = found[2][:300]
        if found[1] != "traceback":
            return ()
        said, self.said = self.said, None
        code = EXIT_CODE.match(said.get("exitcode", ""))
        rank = RANK.match(said.get("rank", ""))
        if code is None or not TIME.fullmatch(said.get("time", "")):
            raise FieldError("the root cause of torchrun lacks its exit code or time")
        extra = {"exit_code": int(code[1]), "host": said.get("host", "")}
        if rank is not None:
            extra["rank"] = int(rank[1])
        msg = f"exit code {_named(int(code[1]))} of rank {extra.get('rank')} on {extra['host']}"
        at = moments.of(line, said["time"])
        return (Event("failure", at, kind=_kind(int(code[1])), msg=msg, extra=extra),)


def _kind(exit_code: int) -> str:
    """Return the failure kind of an exit code; of a signal that no kind names it is `other`."""
    return "exception" if exit_code > 0 else SIGNALS.get(-exit_code, "other")


def _named(exit_code: int) -> str:
    if exit_code >= 0:
        return str(exit_code)
    try:
        return f"{exit_code} ({signal.Signals(-exit_code).name})"
    except ValueError:
        return str(exit_code)
