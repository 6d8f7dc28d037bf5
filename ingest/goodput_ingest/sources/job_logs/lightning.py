"""PyTorch Lightning: its progress bar and the few lines it writes of checkpoints and endings.

Epoch 3:  45%|####      | 450/1000 [02:15<02:45,  3.32it/s, v_num=7, train_loss=1.93]

The bar shows the batch within the epoch and the time since the epoch began, no wall time: without
a collector's label nothing of it can be placed. It counts batches, which are steps unless gradients
are accumulated; the log does not say whether they are.
"""

import re
from collections.abc import Iterable
from typing import ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress

BAR = re.compile(
    r"Epoch (?P<epoch>\d{1,9}):\s+\d{1,3}%\|[^|]*\|\s*(?P<done>\d{1,12})/(?P<total>\d{1,12}) \["
    r"[\d:]+<[^\]]*\]"
)
ENDED = re.compile(r"`?Trainer\.fit`? stopped: ")
RESTORING = re.compile(
    r"Restor(ing states from the checkpoint path|ed all states from the checkpoint)"
)
REQUEUE = re.compile(r"Handling auto-requeue signal: \d+")


class Lightning:
    """The bar's last state on each line, restores, the end, a requeue."""

    name: ClassVar[str] = "lightning"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"Epoch \d+:\s+\d+%\||LOCAL_RANK: \d+ - CUDA_VISIBLE_DEVICES|Trainer\.fit`? stopped"
        rb"|Restoring states from the checkpoint path"
    )
    hints: ClassVar[tuple[str, ...]] = ("Epoch ", "Trainer.fit", "Restor", "auto-requeue")
    reports_durability: ClassVar[bool] = False

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:  # noqa: ARG002 -- none printed
        """Return the events of a line."""
        if bar := BAR.search(line.text):
            step = int(bar["epoch"]) * int(bar["total"]) + int(bar["done"])
            if line.at is None:
                return (Event("step", None, step=step),)
            return () if step == self.progress.step else self.progress.point(step, line.at)
        if RESTORING.search(line.text):
            event = "phase.end" if "Restored" in line.text else "phase.start"
            return (Event(event, line.at, phase="restore"),)
        if ENDED.search(line.text):
            return (Event("job.end", line.at),)
        if REQUEUE.search(line.text):
            return (Event("failure", line.at, kind="preempted", msg=line.text.strip()[:200]),)
        return None
