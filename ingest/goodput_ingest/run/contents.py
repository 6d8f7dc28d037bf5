"""What a file gave, and what a file of its source usually gives and this one did not."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from goodput_ingest.source import Reject, Source
from goodput_queries.evidence.batch import Batch

READINGS: Final = "gpu_samples"
OF_READINGS: Final = ("dcgm", "gpu-table", "nvml", "telemetry-parquet")
RARE: Final = {  # sources whose files are often without any row
    "kernel-log": "no line of it is an Xid or SXid of NVIDIA's driver or a process killed for "
    "memory",
    "slurm": "it lists nothing",
}
INFERRED: Final = (
    "job-log: no trainer's marks are in it; lines with a number and a loss or rate count as steps "
    "(`goodput profile try` shows which)."
)
ALMOST: Final = "the line looks like"
CONTENT_MAX_CHARS: Final = 80


@dataclass
class Contents:
    """Rows of one file by table, events of jobs by name, and its first telling reject."""

    source: str
    tables: Counter[str] = field(default_factory=Counter)
    events: set[str] = field(default_factory=set)
    reject: Reject | None = None
    is_of_engine: bool = False  # a log of a serving engine, which has no steps

    def add(self, batch: Batch) -> None:
        """Count a batch of the file."""
        self.tables[batch.table] += batch.rows.height
        if batch.table == "job_events":
            self.events.update(batch.rows["event"].unique())
            kinds = batch.rows["kind"].drop_nulls()
            self.is_of_engine = self.is_of_engine or kinds.str.starts_with("engine ").any()
        for reject in batch.rejects:
            if self.reject is None or (_is_almost(reject) and not _is_almost(self.reject)):
                self.reject = reject

    def gaps(self, source: Source | None) -> Iterator[str]:
        """Yield what is missing, a sentence each.

        source: after it was read, if it is still there; `unread` of it says of a line that looked
            like what is missing.
        """
        unread = getattr(source, "unread", "")
        why = unread or self._why()
        if not self.tables.total():
            yield f"{self.source}: {RARE.get(self.source, 'no row was read')}{why}."
        elif self.source == "kernel-log" and unread:
            yield f"{self.source}: Xid and SXid lines of NVIDIA's driver were read{why}."
        elif self.source == "job-log":
            if "step" not in self.events and not (why or self.is_of_engine):
                why = getattr(source, "to_draft", "")
            yield from self._gaps_of_log(why)
            if getattr(source, "is_inferred", False):
                yield INFERRED
        elif self.source in OF_READINGS and not self._has_readings():
            yield f"{self.source}: no reading of a GPU was read{why}."

    def _gaps_of_log(self, why: str) -> Iterator[str]:
        if "step" not in self.events:
            if why or not self.is_of_engine:
                yield f"job-log: no step was read{why}."
        elif "ckpt.durable" not in self.events:
            yield (
                f"job-log: steps and no finished save were read{why if 'save' in why else ''}; "
                "until the job completes its steps count as at risk."
            )

    def _has_readings(self) -> bool:
        return any(n for table, n in self.tables.items() if table.startswith(READINGS))

    def _why(self) -> str:
        if self.reject is None:
            return ""
        if self.reject.line is None:
            return f"; {self.reject.reason.removeprefix(f'{self.source}: ').rstrip('.')}"
        content = self.reject.content.strip()[:CONTENT_MAX_CHARS]
        return (
            f"; line {self.reject.line} ({content}) was rejected: {self.reject.reason.rstrip('.')}"
        )


def _is_almost(reject: Reject) -> bool:
    return reject.reason.startswith(ALMOST)
