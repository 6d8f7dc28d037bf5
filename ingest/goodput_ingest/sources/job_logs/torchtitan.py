"""torchtitan's text log (components/metrics.py, checkpoint.py, tools/logging.py).

[titan] 2026-08-20 14:03:11,482 - root - INFO - step: 120  loss:  6.41230  ... tps: 8,214  ...

Every rank writes the same lines when the launcher lets it; the first rank with an event reports
for the gang. Without labels a rank that repeats a line is known by the time and the last phase.
Step durations are not printed: the steps between two lines share their time. `tps` and `tflops` are
of one GPU over that time; `mfu` is N/A where the model is quantised, since torchtitan does not
choose a peak then.
A synchronous save, as that of the last step, is durable when it is finished; an asynchronous one
("Staging") never says so, nor do releases up to 0.2, whose lines are the same for both
("saving ... (or staging ...)"). Their save of the last step is synchronous and names no end: the
collection of garbage that follows it is one.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress, with_amounts

TITAN = re.compile(
    r"\[titan\] (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{1,6}) - \S+ - [A-Z]+ - (?P<said>.*)"
)
STEP = re.compile(r"\s*step:\s+(\d{1,12})\s+\S+:\s")
AMOUNT = re.compile(r"\b(tps|tflops|mfu): +([\d,]{1,15}(?:\.\d{1,6})?|N/A)")
SAVE = re.compile(
    r"(Saving|Staging) the checkpoint\b"
    r"|Finished (saving|staging) the checkpoint"
    r"(?P<either> \(or staging if async is enabled\))? ?in "
    r"|(?P<last>Last step checkpoint completed) in "
)
LAST_SAVE = re.compile(r"Saving a (full|model only) checkpoint .*at last step, step (\d{1,12})")
COLLECTED = "[GC] GC collection invoked by checkpointer"
LOAD = re.compile(r"Loading the checkpoint from |(Finished) loading the checkpoint in ")
BEGINS = re.compile(r"Training starts at step (\d{1,12})\.?\s*$")


class Torchtitan:
    """Steps, saves, loads, start and end, as one of the ranks logs them."""

    name: ClassVar[str] = "torchtitan"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(rb"\[titan\]")
    hints: ClassVar[tuple[str, ...]] = ("[titan]",)
    reports_durability: ClassVar[bool] = False  # not of asynchronous saves

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.reporting_rank: int | None = None
        self.has_reporting_rank = False
        self.phase_from: datetime | None = None
        self.last_said: tuple[str, bool] | None = None  # a phase and whether it ended
        self.last_save: re.Match[str] | None = None  # that of the last step, while it runs

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line; of the ranks that repeat it, only one is read."""
        found = TITAN.search(line.text)
        if found is None:
            return None
        if not self.has_reporting_rank:
            self.reporting_rank, self.has_reporting_rank = line.rank, True
        elif line.rank != self.reporting_rank:
            return ()
        at, said = moments.of(line, found["at"]), found["said"]
        if step := STEP.match(said):
            return self._steps(int(step[1]), at, dict(AMOUNT.findall(said)))
        if save := SAVE.match(said):
            self.last_save = None
            return self._save(save, at)
        if last := LAST_SAVE.match(said):
            self.last_save = last
            return self._phase("ckpt_save", at, is_end=False)
        if self.last_save is not None and said.startswith(COLLECTED):
            return self._end_last_save(self.last_save, at)
        if load := LOAD.match(said):
            return self._phase("restore", at, is_end=load[1] is not None)
        if begins := BEGINS.match(said):
            self.progress.begin(int(begins[1]) - 1, at)
            return self._phase("init", at, is_end=True)
        if said.startswith("Starting job"):
            self.progress, self.last_save = Progress(), None
            return (Event("job.start", at), *self._phase("init", at, is_end=False))
        if said.startswith("Training completed"):
            return (Event("job.end", at),)
        return None

    def _steps(self, step: int, at: datetime, amounts: dict[str, str]) -> Iterable[Event]:
        """Return the steps up to this one with their tokens and FLOPs, where the line has them."""
        self.last_said = None
        done, since = self.progress.step, self.progress.at
        each_s = None
        if done is not None and since is not None and step > done and at > since:
            each_s = (at - since).total_seconds() / (step - done)
        tps, tflops, mfu = (_number(amounts.get(name)) for name in ("tps", "tflops", "mfu"))
        events = with_amounts(
            self.progress.point(step, at),
            gpu_tokens=None if tps is None or each_s is None else tps * each_s,
            gpu_flops=None if tflops is None or each_s is None else tflops * 1e12 * each_s,
            mfu_ratio=None if mfu is None else mfu / 100,
        )
        if amounts.get("mfu") != "N/A":
            return events
        return [replace(event, extra={**event.extra, "dtype": "quantised"}) for event in events]

    def _save(self, found: re.Match[str], at: datetime) -> Iterable[Event]:
        is_end = found[1] is None
        events = list(self._phase("ckpt_save", at, is_end=is_end))
        is_synchronous = is_end and found[2] != "staging" and found["either"] is None
        if events and is_synchronous and self.progress.step is not None:
            # the last step in the log is at most the one that was saved
            events.append(Event("ckpt.durable", at, step=self.progress.step))
        return events

    def _end_last_save(self, found: re.Match[str], at: datetime) -> Iterable[Event]:
        self.last_save = None
        yield from self._phase("ckpt_save", at, is_end=True)
        if found[1] == "full":  # a model alone cannot be resumed from
            yield Event("ckpt.durable", at, step=int(found[2]))

    def _phase(self, phase: str, at: datetime, *, is_end: bool) -> Iterable[Event]:
        if self.last_said == (phase, is_end):
            return ()  # by another rank
        self.last_said = phase, is_end
        start, self.phase_from = self.phase_from, None if is_end else at
        if is_end and start is not None:
            self.progress.block(start, at)
        return (Event("phase.end" if is_end else "phase.start", at, phase=phase),)


def _number(text: str | None) -> float | None:
    return None if text is None or text == "N/A" else float(text.replace(",", "") or "nan")
