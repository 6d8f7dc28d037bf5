"""MaxText's steps (metric_logger.py) and the checkpoints of Orbax (event_tracking.py), from 2024 to 2026.

I0820 14:03:11.482913 139 metric_logger.py:195] completed step: 119, seconds: 4.021, TFLOP/s/device: 402.113, ...
I0820 14:20:04.310000 139 event_tracking.py:171] [process=0] [async] Finished blocking save in 2.31 seconds. ...

absl writes local times without a year. Steps count from 0; releases since 2025 print a step when the next
one has been started, so that all of them are late by one. An asynchronous save blocked for what "blocking
save" says, and is durable with "(blocking + background)"; one without the tag of newer releases that
continues in the background is asynchronous too. A synchronous one blocks until it is finished.
"""  # noqa: E501 -- lines as they are printed

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress, with_amounts

STAMP = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{1,6}) +\d+ \S+:\d+\] ")
NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
STEP = re.compile(rf"completed step: (\d{{1,12}}), seconds: {NUMBER}(?=,|\s*$)")
RATE = re.compile(rf"\b(TFLOP|Tokens)/s/device: {NUMBER}(?=,|\s*$)")
CHECKPOINT = re.compile(
    r"(?:\[process=(?P<process>\d{1,7})\] )?(?:\[(?P<tag>a?sync)\] )?"
    r"Finished (?P<what>blocking save|synchronous save|(?:async_)?save|load)"
    r"(?P<background> \(blocking \+ background\))?"
    r"(?: in |\. Time taken: )(?P<length>\d{1,12}(?:\.\d{1,6})?) ?s(?:econds)?(?P<rest>.*)"
)
FOLDER = re.compile(r"/(?:\w*_)?(\d{1,12})/?\.?\s*$")


class MaxText:
    """Steps, saves and loads of a JAX job, as one of its processes logs them."""

    name: ClassVar[str] = "maxtext"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\bcompleted step: \d+, seconds: |\] Finished (?:blocking |async_)?save\b.* \d"
    )
    hints: ClassVar[tuple[str, ...]] = ("completed step:", "Finished ")
    reports_durability: ClassVar[bool] = True

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.process: str | None = None  # whose checkpoints are read

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        if found := STEP.search(line.text):
            return self._step(found, dict(RATE.findall(line.text)), _moment(line, moments))
        if found := CHECKPOINT.search(line.text):
            return self._checkpoint(found, _moment(line, moments))
        return None

    def _step(
        self, found: re.Match[str], rates: dict[str, str], at: datetime | None
    ) -> Iterable[Event]:
        length_s = _length_s(found[2])
        tflops, tokens = (
            float(rates[name]) * length_s if name in rates else None for name in ("TFLOP", "Tokens")
        )
        return with_amounts(
            self.progress.mean(int(found[1]) + 1, length_s, at),
            gpu_tokens=tokens,
            gpu_flops=None if tflops is None else tflops * 1e12,
        )

    def _checkpoint(self, found: re.Match[str], at: datetime | None) -> Iterable[Event]:
        """Return how long a save or load blocked, and that a save is durable."""
        self.process = self.process or found["process"]
        if found["process"] != self.process:
            return ()  # every process writes the same lines
        length_s, what = _length_s(found["length"]), found["what"]
        is_blocking = what == "blocking save"
        if is_blocking and found["tag"] == "sync":
            return ()  # its last line has the whole length
        events = []
        if not found["background"] and what != "async_save":
            phase = "restore" if what == "load" else "ckpt_save"
            if at is not None:
                self.progress.block(at - timedelta(seconds=length_s), at)
            events.append(Event("phase", at, phase=phase, dur_s=length_s))
        folder = FOLDER.search(found["rest"])
        if what != "load" and not is_blocking and folder is not None:
            # MaxText names a checkpoint after its last step, which is counted from 0
            is_counted = self.progress.step is not None
            events.append(Event("ckpt.durable", at, step=int(folder[1]) + is_counted))
        return events


def _moment(line: Line, moments: Moments) -> datetime | None:
    stamp = STAMP.match(line.text)
    if stamp is None or (line.at is not None and moments.zone is None):
        return line.at
    return moments.without_year(int(stamp[1]), int(stamp[2]), stamp[3])


def _length_s(text: str) -> float:
    if (length_s := float(text)) > DURATION_MAX_S:
        raise FieldError("a step, save or load of more than 31 days")
    return length_s
