"""torchtitan's structured log (torchtitan/observability/structured_logger): a JSON line an event.

{"rank": 0, "global_rank": 0, "host_name": "node001", "pid": 4211, "step": 401, "time_us": 1787234539482913,
 "log_type": "event", "log_type_name": "step_end", "value": 4021.7, ...}

A file a rank, moments in UTC, and every span with its start: the best source of a torchtitan job.
It does not name the run: the folder above `structured_logs` does, or the person who reads it in.
"""  # noqa: E501 -- the line as it is written

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import event_lines, json_lines
from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S, INT32_MAX, Row
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.source import Batch, ReadOptions, RecordedFile
from goodput_queries.errors import IngestError

PHASES = {
    "torch_distributed_init": "init",
    "model_parallelism_init": "init",
    "checkpoint_load": "restore",
    "checkpoint_save": "ckpt_save",
    "eval": "eval",
}
INITIALISED = {"torch_distributed_init_end", "model_parallelism_init_end"}  # and it goes on so
EPOCH_US_MAX = json_lines.EPOCH_S_MAX * 1_000_000
ENDINGS = {"_start": "phase.start", "_end": "phase.end"}


class TorchtitanStructured(RecordedFile):
    """One rank's structured log: steps with their waiting for data, phases, failures."""

    name: ClassVar[str] = "torchtitan-structured"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, the cluster and what the person says of the run."""
        super().__init__(path, options)
        self.data_ms = 0.0
        self._so_far = ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, the first of them with this log's own fields."""
        return json_lines.are_most(head) and _has_event(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part; broken lines are rejects."""
        if not _has_event(files.head(self.path)):
            raise IngestError(f"{self.path}: no line has a log_type_name and a time_us.")
        for part in files.parts(self.path):
            yield from self.read(part)

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the events of the next lines: data fetched before them is waiting of their step."""
        run_id = self.options.run_id or self._folder()
        found = event_lines.batch(
            *(part, self.path, self.name, lambda record: self._rows(record, run_id)),
            *(self._so_far, run_id, self.options.cluster),
        )
        self._so_far = found.digest
        yield found

    def _folder(self) -> str:
        """Return the name of the folder that holds `structured_logs`; '' outside of such."""
        folder = self.path.resolve().parent
        named = folder.parent.name if folder.name == "structured_logs" else ""
        return json_lines.printable(named, 200)

    def _rows(self, said: dict[str, Any], run_id: str) -> tuple[Row, ...]:
        name = json_lines.text(said, "log_type_name", 100)
        at_us = json_lines.whole(said, "time_us", 0, EPOCH_US_MAX)
        if name is None or at_us is None:
            raise FieldError("log_type_name or time_us is missing")
        event = self._event(name, said)
        if event is None:
            return ()
        row = {
            "source": self.name,
            "cluster": self.options.cluster,
            "run_id": run_id,
            "rank": json_lines.whole(said, "global_rank", 0, INT32_MAX),
            "local_rank": json_lines.whole(said, "local_rank", 0, INT32_MAX),
            "host": json_lines.text(said, "host_name", 255),
            "pid": json_lines.whole(said, "pid", 0),
            "ts": EPOCH + timedelta(microseconds=at_us),
            "reports_durability": False,  # the log does not show whether a save was asynchronous
            "extra": json_lines.dumped({"log": "torchtitan", "said": name}),
            **event,
        }
        return (event_lines.row(**row),)

    def _event(self, name: str, said: dict[str, Any]) -> dict[str, Any] | None:
        """Return the job event of a log event; None where the ledger does not use it."""
        if name == "structured_logger_started":
            return {"event": "job.start"}
        if name == "training_start":
            return {"event": "phase.end", "phase": "init"}
        if name in INITIALISED:
            return {"event": "phase.start", "phase": "init"}
        if name == "torch_distributed_teardown_end":
            return {"event": "job.end"}
        if name == "fetching_batch_end":
            waited_ms = json_lines.number(said, "value", 0, DURATION_MAX_S * 1000)
            if waited_ms is None:
                raise FieldError("value is missing, a fetching_batch_end needs it")
            self.data_ms += waited_ms
            return None
        if name == "step_end":
            data_s, self.data_ms = self.data_ms / 1000, 0.0
            length_ms = json_lines.number(said, "value", 0, DURATION_MAX_S * 1000)
            step = json_lines.whole(said, "step", 0)
            if step is None or length_ms is None:
                raise FieldError("step or value is missing, a step_end needs both")
            # what was fetched beyond the step was fetched before it
            return {
                "event": "step",
                "step": step,
                "dur_s": length_ms / 1000,
                "data_s": min(data_s, length_ms / 1000),
            }
        if name.endswith("_error"):
            msg = f"{name} {json_lines.text(said, 'message', 300) or ''}".strip()
            return {"event": "failure", "kind": "exception", "msg": msg}
        for ending, event in ENDINGS.items():
            if (phase := PHASES.get(name.removesuffix(ending))) and name.endswith(ending):
                return {"event": event, "phase": phase}
        return None


def _has_event(head: bytes) -> bool:
    return any(
        b'"log_type_name"' in line and b'"time_us"' in line for line in json_lines.objects(head)
    )
