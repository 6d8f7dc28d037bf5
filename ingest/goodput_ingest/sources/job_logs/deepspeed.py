"""DeepSpeed (utils/logging.py, runtime/engine.py, runtime/checkpoint_engine).

[2026-08-20 14:03:11,482] [INFO] [logging.py:128:log_dist] [Rank 0] step=120, skipped=0, lr=[2.4e-05], ...

The pipeline engine prints `steps: 120 loss: 7.1045 iter time (s): 4.022 samples/sec: 127.300`, without a
time. A save that "is about to be saved" is not saved; the engine says "is ready now!" when it is. The
logger's level is WARNING by default, so these lines may be absent.
"""  # noqa: E501 -- the line as it is printed

import re
from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress

LOGGED = re.compile(
    r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] \[[A-Z]+\] \[[\w.]+:\d+:\w+\] (?P<said>.*)"
)
STEP = re.compile(r"(?:\[Rank \d+\] )?step=(\d{1,12}), skipped=")
PIPELINE = re.compile(
    r"\bsteps: (\d{1,12}) loss: \S{1,30} iter time \(s\): (\d{1,6}(?:\.\d{1,9})?)(?![\d.])"
)
CHECKPOINT = re.compile(
    r"(?:\[Rank \d+\] )?\[(?P<engine>\w+)\] Checkpoint global_step(?P<step>\d{1,12}) is "
    r"(?P<what>about to be saved|ready now)!"
)


class DeepSpeed:
    """Steps and saves as rank 0 logs them."""

    name: ClassVar[str] = "deepspeed"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\] \[(?:logging|timer|engine|config|comm)\.py:\d+:\w+\] |DeepSpeed info: version="
    )
    hints: ClassVar[tuple[str, ...]] = ("step=", "Checkpoint global_step", "iter time (s):")
    reports_durability: ClassVar[bool] = True

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.save_from: datetime | None = None
        self.has_trained_since_save = False

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        if found := PIPELINE.search(line.text):
            return self._pipeline(int(found[1]), float(found[2]), line.at)
        if (found := LOGGED.search(line.text)) is None:
            return None
        if step := STEP.match(found["said"]):
            self.has_trained_since_save = True
            return self.progress.point(int(step[1]), moments.of(line, found["at"]))
        if checkpoint := CHECKPOINT.match(found["said"]):
            return self._checkpoint(checkpoint, moments.of(line, found["at"]))
        return None

    def _pipeline(self, step: int, mean_s: float, at: datetime | None) -> Iterable[Event]:
        """Return the steps of the pipeline engine's line, unless the logger has written them."""
        if step == self.progress.step:
            return ()
        self.save_from = None
        return self.progress.mean(step, mean_s, at)

    def _checkpoint(self, found: re.Match[str], at: datetime) -> Iterable[Event]:
        if found["what"] != "ready now":
            if found["engine"] != "Torch":
                return ()  # the others save in the background
            self.save_from, self.has_trained_since_save = at, False
            return (Event("phase.start", at, phase="ckpt_save"),)
        durable = Event("ckpt.durable", at, step=int(found["step"]))
        start, self.save_from = self.save_from, None
        if start is None:
            return (durable,)
        if not self.has_trained_since_save:
            self.progress.block(start, at)
        return (Event("phase.end", at, phase="ckpt_save"), durable)
