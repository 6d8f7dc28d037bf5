"""Files of JSON lines that become `raw.job_events`: part by part, what is broken set aside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from goodput_ingest import files, json_lines
from goodput_ingest.json_lines import FieldError
from goodput_ingest.source import Batch, Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

DURATION_MAX_S = 31 * 86_400  # nothing inside a job takes longer; milliseconds as seconds do
INT32_MAX = 2**31 - 1
MSG_MAX_CHARS = 2000
EXTRA_MAX_CHARS = 8000
SRUN_LABEL = re.compile(r"^\s*\d+:\s*(?=\{)")  # `srun --label` writes "3: " before each line
SCHEMA: dict[str, Any] = {
    "source": pl.String,
    "cluster": pl.String,
    "run_id": pl.String,
    "attempt": pl.Int32,
    "rank": pl.Int32,
    "local_rank": pl.Int32,
    "host": pl.String,
    "pid": pl.Int64,
    "gpu_uuid": pl.String,
    "ts": pl.Datetime("us"),
    "event": pl.String,
    "step": pl.Int64,
    "dur_s": pl.Float64,
    "phase": pl.String,
    "data_s": pl.Float64,
    "comm_s": pl.Float64,
    "straggler_s": pl.Float64,
    "throttle_s": pl.Float64,
    "tokens": pl.Float64,
    "flops": pl.Float64,
    "kind": pl.String,
    "msg": pl.String,
    "reports_durability": pl.Boolean,
    "extra": pl.String,
}
Row = tuple[Any, ...]  # in the order of SCHEMA


def row(**told: Any) -> Row:
    """Return a row of these columns; the others are null."""
    return tuple(told.get(name) for name in SCHEMA)


def batches(
    path: Path,
    source: str,
    rows_of: Callable[[dict[str, Any]], Iterable[Row | FieldError]],
    *meaning: object,
    is_carried_over: bool,
) -> Iterator[Batch]:
    """Yield the job events of a file; `rows_of` says what the object on a line tells.

    It raises FieldError for a broken line and yields one for a broken item among several of a line.
    `meaning` is what else decides what lines mean; `is_carried_over`: so do the lines before them.
    """
    so_far = ""
    for part in files.parts(path):
        rows: list[Row] = []
        rejects: list[Reject] = []
        for number, line in enumerate(part.lines, part.first_line):
            if not line.strip():
                continue
            try:
                for told in rows_of(_record(line)):
                    if isinstance(told, FieldError):
                        rejects.append(_reject(number, told, line))
                    else:
                        rows.append(told)
            except FieldError as error:
                rejects.append(_reject(number, error, line))
        if part.damage:
            rejects.append(Reject(part.first_line + len(part.raw_lines), part.damage))
        before = (so_far,) if is_carried_over else ()
        so_far = files.digest(part, *before, *meaning)
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        yield Batch("job_events", frame, source, str(path), so_far, rejects)


def _record(line: str) -> dict[str, Any]:
    return json_lines.record(line if line[0] == "{" else SRUN_LABEL.sub("", line))


def _reject(number: int, error: FieldError, line: str) -> Reject:
    return Reject(number, str(error), json_lines.printable(line, 500))
