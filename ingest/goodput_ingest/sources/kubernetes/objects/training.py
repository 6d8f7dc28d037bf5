"""Jobs of Kubeflow: when they ran, failed and ended, and how far their trainers say they are.

Kubeflow Trainer keeps the last status of a TrainJob only. Trainers expect the rest to take as long
a step as they took so far: that is how long the steps up to the first status of a file took. Those
of the next ones took the time since the status before. Of a status without time left alone no step
is known.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.sources.kubernetes.objects.fields import (
    NUMBER_MAX,
    ApiObject,
    listed,
    part,
    when,
    why_of,
    word,
)

GROUPS: Final = {
    "trainer.kubeflow.org": {"TrainJob"},
    "kubeflow.org": {"PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob"},
}
# condition: event of the job; `Suspended` is in the queue's own objects
EVENTS: Final = {
    "Running": "job.start",
    "Restarting": "failure",
    "Failed": "failure",
    "Succeeded": "job.end",
    "Complete": "job.end",
}
# names that trainers give to metrics, without case and marks
STEPS: Final = ("step", "globalstep", "currentstep", "trainglobalstep")
PLANNED: Final = ("totalsteps", "maxsteps", "plannedsteps")
LOSSES: Final = ("loss", "trainloss")
SHARE: Final = 100
Row = dict[str, Any]
Status = tuple[int, datetime]  # last step, and when it was so


@dataclass
class Training:
    """Job events of the jobs of a file. last: step and time of the last status, by uid."""

    last: dict[str, Status] = field(default_factory=dict)

    def events(self, found: ApiObject) -> Iterator[Row]:
        """Yield the events of a job: what its conditions say, and its trainer's status."""
        of = {
            "run_id": f"{found.namespace}/{found.name}",
            "rank": 0,
            "reports_durability": False,
        }
        for name, event in EVENTS.items():
            if (at := found.since(name)) is not None:
                failed = {"kind": "other", "msg": why_of(found.conditions[name])}
                yield of | {"ts": at, "event": event} | (failed if event == "failure" else {})
        status = part(found.status, "trainerStatus")
        if (at := when(status, "lastUpdatedTime")) is not None:
            for row in self._status(found, status, at):
                yield of | {"ts": at} | row

    def _status(self, found: ApiObject, status: dict[str, Any], at: datetime) -> Iterator[Row]:
        metrics = {
            re.sub(r"[^a-z]", "", word(one, "name").lower()): word(one, "value")
            for one in listed(status, "metrics")
        }
        extra: dict[str, object] = {}
        percent = json_lines.number(status, "progressPercentage", 0, SHARE)
        left_s = json_lines.whole(status, "estimatedRemainingSeconds", 0, NUMBER_MAX)
        if percent is not None:
            extra["progress_ratio"] = percent / SHARE
        if left_s is not None:
            extra["expected_end_at"] = (at + timedelta(seconds=left_s)).isoformat(" ", "seconds")
        if (planned := _metric(metrics, PLANNED)) is not None:
            extra["planned_steps"] = int(planned)
        if extra:
            yield {"event": "metric", "extra": json_lines.dumped(extra)}
        step = _metric(metrics, STEPS)
        if step is not None and step >= 1:
            taken = self._taken(found, (int(step), at), planned, left_s)
            if taken is not None:
                loss = _metric(metrics, LOSSES)
                yield {"event": "step", "step": int(step), "loss": loss} | taken

    def _taken(
        self, found: ApiObject, now: Status, planned: float | None, left_s: int | None
    ) -> Row | None:
        """Return how many steps ended with a status and how long they took; None: not known."""
        step, at = now
        uid = word(found.metadata, "uid") or found.name
        done, since = self.last.get(uid, (0, None))
        self.last[uid] = now
        if since is None and left_s and planned is not None and planned > step:
            taken = timedelta(seconds=left_s * step / (planned - step))
            since = max(at - min(taken, at - EPOCH), found.created)
        if since is None or step <= done or at <= since:
            return None
        steps = json.dumps({"mean_of": step - done})
        return {"dur_s": round((at - since).total_seconds(), 3), "extra": steps}


def _metric(metrics: dict[str, str], names: tuple[str, ...]) -> float | None:
    """Return the first of these metrics, which are written as text; None where it has none."""
    text = next((metrics[name] for name in names if name in metrics), None)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        raise FieldError("the value of a metric is not a number") from None
    return json_lines.number({"metric": value}, "metric", -NUMBER_MAX, NUMBER_MAX)
