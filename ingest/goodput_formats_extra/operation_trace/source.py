"""Operations of each worker of a job: Parquet, a row an operation of a worker in a step.

| column | type | |
|---|---|---|
| `dp_rank`, `stage` | integers | data parallel rank and pipeline stage of the worker, from 0 |
| `step` | integer | training step |
| `optype` | text | forward-compute, forward-send, grads-reduce-scatter ... (dependencies.KINDS) |
| `start_ts`, `duration` | seconds | start within the step, and length |
| `seq_id` | integer | place among operations of this kind of the worker and step |

This is the format of ByteDance's StragglerAnalysis. Steps have no time of day: what is found is of
the run, not of a moment. The run is `--run-id`, else the file's name. Each step is replayed with
ideal lengths; the result is kept, and the operations of the slowest data parallel rank in one step.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from goodput_formats_extra.operation_trace.dependencies import (
    KINDS,
    Operation,
    Step,
    UnknownShapeError,
    step_of,
)
from goodput_formats_extra.operation_trace.replay import Replay, Trace
from goodput_ingest.formats import files, parquet_columns
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError

COLUMNS = ("dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id")
ROWS_MAX = 20_000_000  # some 2 GB while they are replayed
LENGTH_MAX_S = 86_400.0
RUN_ID_MAX_CHARS = 200
KEY = ("dp_rank", "stage", "step", "optype", "seq_id")


class OperationTrace(RecordedFile):
    """A recording of the operations of all workers in some steps."""

    name: ClassVar[str] = "operation-trace"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether this is Parquet with the columns of such a trace."""
        return set(COLUMNS) <= parquet_columns.names(path, head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.step_replays` and its parts; steps that are not whole are rejects."""
        rows, rejects = self._rows()
        try:
            trace, numbers, odd = _trace(rows)
        except UnknownShapeError as error:
            raise IngestError(
                f"{self.path}: operation-trace: {error}. Only data and pipeline parallelism "
                "without virtual stages can be replayed."
            ) from error
        replay = Replay(trace)
        workers = replay.workers()
        digest = self._digest()
        common = {"source": self.name, "cluster": self.options.cluster, "run_id": self._run_id()}
        of_trace = {"source": self.name, "trace_id": digest}
        tables = {
            "step_replays": pl.DataFrame(
                [{**common, "trace_id": digest, **_summary(replay, workers)}]
            ),
            "replayed_parts": _parts(replay, workers, numbers).with_columns(
                **{name: pl.lit(value) for name, value in of_trace.items()}
            ),
            "replayed_operations": _timeline(replay, trace, numbers).with_columns(
                **{name: pl.lit(value) for name, value in of_trace.items()}
            ),
        }
        for table, frame in tables.items():
            yield Batch(table, frame, self.name, str(self.path), digest, [*rejects, *odd])
            rejects, odd = [], []

    def _rows(self) -> tuple[pl.DataFrame, list[Reject]]:
        """Return the rows that have all fields within their range, and the others."""
        height = sum(parquet_columns.described(self.path)[1])
        if height > ROWS_MAX:
            raise IngestError(
                f"{self.path}: more than {ROWS_MAX:,} operations. Record fewer steps."
            )
        parts = [*parquet_columns.parts(self.path, [height], COLUMNS)]
        frame = pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Null))
        try:
            rows = frame.with_row_index("row", offset=1).with_columns(
                pl.col("optype").cast(pl.String),
                pl.col("start_ts", "duration").cast(pl.Float64),
                pl.col("dp_rank", "stage", "step", "seq_id").cast(pl.Int64),
            )
        except pl.exceptions.PolarsError as error:
            raise IngestError(f"{self.path}: operation-trace: {error}") from error
        is_sound = pl.all_horizontal(
            pl.col("optype").is_in(KINDS),
            pl.col("start_ts").is_between(0, LENGTH_MAX_S),
            pl.col("duration").is_between(0, LENGTH_MAX_S),
            pl.col("dp_rank", "stage", "step", "seq_id").is_between(0, 2**31 - 1),
        ).fill_null(value=False)
        found = rows.filter(~is_sound)
        rejects = [
            Reject(
                row["row"],
                f"operation-trace: row {row['row']} has no known operation, or a number is missing "
                "or out of range.",
                printable(str({name: row[name] for name in COLUMNS}), 300),
            )
            for row in found.head(100).iter_rows(named=True)
        ]
        return rows.filter(is_sound), rejects

    def _digest(self) -> str:
        with self.path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        read = f"{content}\n{self.options.cluster}\n{self._run_id()}"
        return hashlib.sha256(read.encode()).hexdigest()[: files.DIGEST_CHARS]

    def _run_id(self) -> str:
        name = self.path.name.removesuffix(".parquet")
        return printable(self.options.run_id or name, RUN_ID_MAX_CHARS)


def _trace(rows: pl.DataFrame) -> tuple[Trace, list[int], list[Reject]]:
    """Return the steps in which all workers have the same operations, their numbers, the others."""
    if rows.is_empty():
        raise UnknownShapeError("there is no operation")
    first = rows.filter((pl.col("step") == rows["step"].min()) & (pl.col("dp_rank") == 0))
    order = first.sort("start_ts", "stage", "optype", "seq_id").select("optype", "seq_id", "stage")
    step = step_of([Operation(*of) for of in order.iter_rows()])
    ranks = int(rows["dp_rank"].max()) + 1  # type: ignore[arg-type]
    known = order.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    placed = rows.join(known, on=["optype", "seq_id", "stage"], how="left")
    of_steps = placed.group_by("step").agg(
        whole=pl.col("place").is_not_null().all()
        & (pl.struct("place", "dp_rank").n_unique() == pl.len())
        & (pl.len() == ranks * len(step.operations))
    )
    numbers = of_steps.filter("whole")["step"].sort().to_list()
    rejects = [
        Reject(
            None, f"operation-trace: step {number} lacks operations of some workers, or has more."
        )
        for number in of_steps.filter(~pl.col("whole"))["step"].sort().to_list()
    ]
    if not numbers:
        raise UnknownShapeError("no step has the same operations on all data parallel ranks")
    placed = placed.filter(pl.col("step").is_in(numbers))
    at = (
        placed["place"].to_numpy(),
        placed["dp_rank"].to_numpy(),
        np.searchsorted(np.array(numbers), placed["step"].to_numpy()),
    )
    start_s, end_s = np.empty((2, len(step.operations), ranks, len(numbers)))
    start_s[at] = placed["start_ts"].to_numpy()
    end_s[at] = (placed["start_ts"] + placed["duration"]).to_numpy()
    return Trace(step, start_s, end_s), numbers, rejects


def _summary(replay: Replay, workers: np.ndarray[Any, Any]) -> dict[str, Any]:
    stages = workers.shape[1]
    alone = [replay.only(replay.step.places(stage=stage)) for stage in range(stages)]
    slowest = int(np.argmax(alone))
    return {
        "data_ranks": workers.shape[0],
        "stages": stages,
        "steps": replay.undelayed.size,
        "recorded_s": replay.mean(replay.recorded, replay.delays),
        "undelayed_s": float(replay.undelayed.mean()),
        "compute_s": replay.mean(replay.compute_recorded()),
        "worker_means_s": replay.mean(replay.means(by_stage=True, by_worker=True)),
        "stage_means_s": replay.mean(replay.means(by_stage=True, by_worker=False)),
        "ideal_s": replay.ideal_s,
        "slowest_stage": slowest,
        "without_slowest_stage_s": replay.without(replay.step.places(stage=slowest)),
        "without_slowest_workers_s": replay.without_worst(workers),
        "forward_backward_correlation": replay.correlation(),
    }


def _parts(replay: Replay, workers: np.ndarray[Any, Any], numbers: list[int]) -> pl.DataFrame:
    """Return the mean step with one worker, stage or kind as recorded; and each step."""
    rows: list[dict[str, Any]] = [
        {"part": "worker", "dp_rank": rank, "stage": stage, "step_s": float(workers[rank, stage])}
        for rank, stage in np.ndindex(*workers.shape)
    ]
    rows += [
        {"part": "stage", "stage": stage, "step_s": replay.only(replay.step.places(stage=stage))}
        for stage in range(workers.shape[1])
    ]
    rows += [
        {"part": "operation", "operation": kind, "step_s": replay.only(replay.step.places(kind))}
        for kind in KINDS
        if replay.step.places(kind)
    ]
    rows += [
        {"part": "step", "step": number, "step_s": float(seconds)}
        for number, seconds in zip(numbers, replay.undelayed, strict=True)
    ]
    kinds = {
        "part": pl.String(), "dp_rank": pl.Int32(), "stage": pl.Int32(),
        "operation": pl.String(), "step": pl.Int64(), "step_s": pl.Float64(),
    }  # fmt: skip
    filled = [{name: row.get(name) for name in kinds} for row in rows]
    return pl.DataFrame(filled, schema=kinds, orient="row")


def _timeline(replay: Replay, trace: Trace, numbers: list[int]) -> pl.DataFrame:
    """Return the operations of the slowest data rank in the step nearest to the median."""
    times = replay.undelayed
    at = int(np.argmin(np.abs(times - np.median(times))))
    ends = replay.ends(replay.recorded)[:, :, at]
    # the one whose last compute ends last: all wait for it when gradients are reduced
    compute = [place for place, of in enumerate(trace.step.operations) if "compute" in of.kind]
    rank = int(np.argmax(ends[compute].max(axis=0)))
    begin = trace.start_s[:, :, at].min()
    ideal_start = _starts(replay.step, replay.ideal_ends)[:, 0, 0]
    return pl.DataFrame(
        {
            "step": numbers[at],
            "dp_rank": rank,
            "stage": [of.stage for of in trace.step.operations],
            "operation": [of.kind for of in trace.step.operations],
            "place": [of.place for of in trace.step.operations],
            "start_s": trace.start_s[:, rank, at] - begin,
            "end_s": trace.end_s[:, rank, at] - begin,
            "ideal_start_s": ideal_start,
            "ideal_end_s": replay.ideal_ends[:, 0, 0],
        },
        schema_overrides={"dp_rank": pl.Int32, "stage": pl.Int32, "place": pl.Int32},
    )


def _starts(step: Step, ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return when each operation starts: its waits for others are inside it."""
    found = np.zeros_like(ends)
    for place, others in enumerate(step.waits_for):
        if others:
            found[place] = ends[others].max(axis=0)
    return found
