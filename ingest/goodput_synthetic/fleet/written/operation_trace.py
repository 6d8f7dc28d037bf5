"""A trace of the operations of a pipeline: some steps of the last run that is large enough.

Four stages of two data parallel ranks, one micro-batch after the other: first all forward, then
all backward. The last stage has the loss as well, and one worker is slow.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from goodput_synthetic.fleet.lives import Life

RANKS, STAGES, MICRO_BATCHES, STEPS, FIRST_STEP = 2, 4, 8, 6, 240
FORWARD_S, BACKWARD_S, SEND_S = 1.48, 2.96, 0.02
REDUCE_S, CLIP_S, OPTIMIZER_S = 1.2, 0.1, 0.3
LOSS_STAGE, SLOW_WORKER = 1.25, 1.15  # times as long
AFTER = ("grads-reduce-scatter", "optimizer-clip-main-grad", "optimizer")
STORY = "llm-pretrain"


def write(folder: Path, lives: list[Life], seed: int) -> None:
    """Write the trace of the last such run; nothing where there is none."""
    runs = [life for life in lives if life.request.story == STORY and life.attempts]
    if not runs:
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, 33])
    rows = [row for step in range(STEPS) for row in _step(FIRST_STEP + step, rng)]
    columns = ("dp_rank", "stage", "step", "optype", "seq_id", "start_ts", "duration")
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    frame.write_parquet(folder / f"{runs[-1].request.run_id}.parquet")


def _step(step: int, rng: np.random.Generator) -> list[tuple[object, ...]]:
    """Return the operations of all workers in one step."""
    rows: list[tuple[object, ...]] = []
    ends = [_of_rank(rows, rank, step, rng) for rank in range(RANKS)]
    reduced = [max(of_stage) + REDUCE_S for of_stage in zip(*ends, strict=True)]
    clipped = max(reduced) + CLIP_S
    for rank, stage in np.ndindex(RANKS, STAGES):
        times = (ends[rank][stage], reduced[stage], clipped, clipped + OPTIMIZER_S)
        rows += [
            (rank, stage, step, kind, 0, begin, end - begin)
            for kind, (begin, end) in zip(AFTER, pairwise(times), strict=True)
        ]
    return rows


def _of_rank(
    rows: list[tuple[object, ...]], rank: int, step: int, rng: np.random.Generator
) -> list[float]:
    """Add compute and transfers of a data parallel rank; return when each stage has computed."""
    free = [0.0] * STAGES
    for way, length in (("forward", FORWARD_S), ("backward", BACKWARD_S)):
        order = range(STAGES) if way == "forward" else range(STAGES - 1, -1, -1)
        for place in range(MICRO_BATCHES):
            for stage in order:
                took = length * rng.normal(1, 0.01)
                took *= LOSS_STAGE if stage == STAGES - 1 else 1
                took *= SLOW_WORKER if (rank, stage) == (1, 1) else 1
                begin, end = free[stage], free[stage] + took
                rows.append((rank, stage, step, f"{way}-compute", place, begin, took))
                following = stage + (1 if way == "forward" else -1)
                free[stage] = end
                if not 0 <= following < STAGES:
                    continue
                arrives = max(end, free[following]) + SEND_S
                rows += [
                    (rank, stage, step, f"{way}-send", place, end, arrives - end),
                    (rank, following, step, f"{way}-recv", place, free[following],
                     arrives - free[following]),
                ]  # fmt: skip
                free[following] = arrives
    return free
