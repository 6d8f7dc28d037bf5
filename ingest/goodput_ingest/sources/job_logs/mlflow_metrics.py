"""MLflow's file store: `mlruns/<experiment>/<run>/metrics/<name>` and the run's `meta.yaml`.

    1795805150561 3.0 1          milliseconds, value, step

One metric of a run gives its steps, the training loss if there is one; of each other one an event
says that it is there. `meta.yaml` has the run's user, start, end and status. The number of GPUs is
that of its parameters or tags, else of its system metrics (`system/gpu_0_power_usage_watts`), which
are of all GPUs that it saw.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.run_history import (
    STEP_MAX,
    History,
    Point,
    is_loss,
    of_steps,
    summary,
)
from goodput_ingest.sources.job_logs.world_size import WORLD_SIZE
from goodput_queries.errors import IngestError

ENTRY: Final = re.compile(r"(\d{12,14}) (\S{1,40}) (-?\d{1,16})(?: .*)?")  # then a data set
FIELD: Final = re.compile(r"^(\w+): *(.*?) *$", re.MULTILINE)
OF_RUN: Final = {"run_id", "status", "start_time", "artifact_uri"}
METRICS: Final = "metrics"
GPU_METRIC: Final = re.compile(r"system/((?:[^/]+/)?gpu_\d{1,4})_\w+")  # with a node's name or not
SIZES: Final = ("world_size", "num_gpus", "n_gpus", "n_gpu", "gpu_count")
META_MAX_CHARS: Final = 100_000
FINISHED, FAILED, KILLED = "3", "4", "5"  # of RunStatus; while it runs 1
ENDS: Final = {
    FINISHED: ("job.end", None, None),
    FAILED: ("failure", "other", "MLflow: the run failed"),
    KILLED: ("failure", "other", "MLflow: the run was killed"),
}


class MlflowMetrics(RecordedFile):
    """A metric of a run, or the run's own description."""

    name: ClassVar[str] = "mlflow"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the lines are entries, or the fields are those of a run."""
        text = head.decode("utf-8", "replace")
        return _is_metric(text) or _fields(text).keys() >= OF_RUN

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`; raises IngestError for another file."""
        head = files.head(self.path)
        if not self.recognises(self.path, head):
            raise IngestError(
                f"{self.path}: this is neither a metric of MLflow nor the meta.yaml of a run."
            )
        parts = list(files.parts(self.path))
        digests = [files.digest(part) for part in parts]
        rejects = [reject for part in parts for reject in part.cut]
        if not _is_metric(head.decode("utf-8", "replace")):
            text = "\n".join(line for part in parts for line in part.lines)[:META_MAX_CHARS]
            yield from self._of_run(text, rejects, digests)
            return
        name, names, run_id, gpus = self._place()
        points: list[Point] = []
        for part in parts:
            for number, line in enumerate(part.lines, part.first_line):
                try:
                    points += [_point(line, is_loss=is_loss(name))] if line.strip() else []
                except FieldError as error:
                    rejects.append(Reject(number, str(error), json_lines.printable(line, 500)))
        is_of_steps = of_steps(names) == name
        others = [] if is_of_steps else summary(name, points)
        if is_of_steps and points and gpus:
            first = min(point.at for point in points)
            others = [Event("metric", first, kind=WORLD_SIZE, extra={WORLD_SIZE: gpus})]
            digests.append(f"{gpus} GPUs")
        yield from History(self.name, self.path, self.options, run_id).batches(
            points if is_of_steps else (), others, rejects, [*digests, str(is_of_steps)]
        )

    def _place(self) -> tuple[str, list[str], str, int]:
        """Return the metric's name, those of all metrics of the run, the run and its GPUs.

        Outside of a folder `metrics` the file is the only one, and the run is what is given.
        """
        path = self.path.absolute()
        folder = next((one for one in path.parents if one.name == METRICS), None)
        if folder is None:
            return path.stem, [path.stem], self.options.run_id or "", 0
        names = [f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file()]
        run_id = self.options.run_id or folder.parent.name
        return path.relative_to(folder).as_posix(), names, run_id, _gpus(folder.parent, names)

    def _of_run(self, text: str, rejects: list[Reject], digests: list[str]) -> Iterator[Batch]:
        found = _fields(text)
        events: list[Event] = []
        try:
            start = _moment(found["start_time"])
            if (end := ENDS.get(found["status"])) is not None:
                event, kind, msg = end
                events = [Event(event, _moment(found.get("end_time", "")), kind=kind, msg=msg)]
        except FieldError as error:
            rejects.append(Reject(None, f"{self.name}: {error}.", text[:500]))
            start = None
        run_id = self.options.run_id or json_lines.printable(found["run_id"], 200)
        user = json_lines.printable(found.get("user_id", ""), 200)
        history = History(self.name, self.path, self.options, run_id, user)
        yield from history.batches((), events, rejects, digests, start)


def _gpus(run: Path, names: list[str]) -> int:
    """Return how many GPUs a run has by its folder and the names of its metrics; 0: not said."""
    files_of_sizes = (run / kind / name for kind in ("params", "tags") for name in SIZES)
    said = [
        files.head(file).decode("utf-8", "replace") for file in files_of_sizes if file.is_file()
    ]
    sizes = [int(text) for text in said if re.fullmatch(r"[1-9]\d{0,5}\s*", text)]
    seen = {found[1] for name in names if (found := GPU_METRIC.fullmatch(name)) is not None}
    return max(sizes, default=len(seen))


def _is_metric(text: str) -> bool:
    """Say whether most of the first lines are entries."""
    lines = [line for line in text.splitlines()[: json_lines.HEAD_LINES] if line.strip()]
    return 2 * sum(ENTRY.fullmatch(line) is not None for line in lines) > len(lines)


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a flat YAML as texts."""
    return {name: value.strip("'\"") for name, value in FIELD.findall(text[:META_MAX_CHARS])}


def _moment(milliseconds: str) -> datetime:
    if not re.fullmatch(r"\d{1,14}", milliseconds):
        raise FieldError(f"{milliseconds[:40]!r} is not a time in milliseconds")
    return json_lines.moment({"time": int(milliseconds) / 1000}, "time")


def _point(line: str, *, is_loss: bool) -> Point:
    if (found := ENTRY.fullmatch(line.strip())) is None:
        raise FieldError("the line is no entry of milliseconds, value and step")
    try:
        value = float(found[2])
    except ValueError:
        raise FieldError(f"the value {found[2]!r} is no number") from None
    step = json_lines.whole({"step": int(found[3])}, "step", 0, STEP_MAX)
    return Point(step or 0, _moment(found[1]), value if is_loss else None)
