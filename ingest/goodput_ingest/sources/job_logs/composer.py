"""Composer (loggers/console_logger.py, utils/checkpoint.py, callbacks/checkpoint_saver.py).

[batch=120/4800]:
         Train time/batch: 119
2026-08-20 14:20:02,001: rank0[4211][MainThread]: DEBUG: composer.utils.checkpoint: State dict created.

The console prints a batch's metrics without a time: a collector's label places them. Python's logger
has one. Saves are logged at its level DEBUG, the default of LLM Foundry: training is blocked until
the local file is complete; the upload after it blocks nothing, and no line says that it ended, so
that a checkpoint which is uploaded is not known to be durable.
"""  # noqa: E501 -- a line as it is printed

import re
from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress

BATCH = re.compile(r"^\s*Train time/batch: (\d{1,12})\s*$")
LOGGED = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}): rank(?P<rank>\d{1,7})\[\d+\]\[[^\]]{1,100}\]: "
    r"[A-Z]+: composer\.[\w.]+: (?P<said>.*)"
)
SAVING = re.compile(
    r"State dict created\.|Saving (?:monolithic checkpoint|sharded checkpoints) to "
)
SAVED = re.compile(r"Checkpoint locally saved to (?P<file>.*)")
FILE = re.compile(r"\bba(\d{1,12})\b")


class Composer:
    """Batches, saves, loads and the start of training, as rank 0 logs them."""

    name: ClassVar[str] = "composer"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\bTrain time/batch: \d|\[MainThread\]: [A-Z]+: composer\."
    )
    hints: ClassVar[tuple[str, ...]] = ("Train time/batch:", ": composer.")
    reports_durability: ClassVar[bool] = False  # not of those that are uploaded

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.is_resumed = False
        self.save_from: datetime | None = None
        self.local: Event | None = None  # a complete local file, durable unless it is uploaded

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        if batch := BATCH.match(line.text):
            step = int(batch[1]) + 1  # the number counts batches before this one
            if line.at is None:
                return (Event("step", None, step=step),)
            return (*self._take_local(), *self._point(step, line.at))
        if (found := LOGGED.search(line.text)) is None:
            return None
        if int(found["rank"]) != 0:
            return ()
        return self._logged(found["said"], moments.of(line, found["at"]))

    def _point(self, step: int, at: datetime) -> Iterable[Event]:
        return () if step == self.progress.step else self.progress.point(step, at)

    def _logged(self, said: str, at: datetime) -> Iterable[Event] | None:
        if SAVING.match(said):
            if self.save_from is not None:
                return ()
            self.save_from = at
            return (*self._take_local(), Event("phase.start", at, phase="ckpt_save"))
        if saved := SAVED.match(said):
            return self._saved(saved["file"], at)
        if said.startswith("Uploading checkpoint to "):
            self.local = None
        elif said.startswith("Loading checkpoint from "):
            self.is_resumed = True
            return (Event("phase.start", at, phase="restore"),)
        elif said.startswith("Trainer checkpoint loaded from "):
            return (Event("phase.end", at, phase="restore"),)
        elif said.startswith("Starting training loop"):
            self.progress.begin(None if self.is_resumed else 0, at)
        else:
            return None
        return ()

    def _saved(self, file: str, at: datetime) -> Iterable[Event]:
        start, self.save_from = self.save_from, None
        named = FILE.search(file)
        step = self.progress.step if named is None else int(named[1])
        self.local = None if step is None else Event("ckpt.durable", at, step=step)
        if start is None:
            return ()
        self.progress.block(start, at)
        return (Event("phase.end", at, phase="ckpt_save"),)

    def _take_local(self) -> Iterable[Event]:
        local, self.local = self.local, None
        return () if local is None else (local,)
