"""Steps of two data parallel ranks in two stages, whose times can be reckoned by hand."""

from itertools import pairwise

import polars as pl
import pytest

from goodput_formats_extra.operation_trace.source import OperationTrace
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

FORWARD_S, BACKWARD_S, SYNC_S = 1.0, 2.0, 0.5
AFTER = ("grads-reduce-scatter", "optimizer-clip-main-grad", "optimizer")
STEP_S = 3 * FORWARD_S + 3 * BACKWARD_S + SYNC_S  # two micro-batches in two stages, one after one


def evenly(_rank, _stage, _micro_batch, _step):
    return 1.0


def slow_worker(rank, stage, *_):
    return 2.0 if (rank, stage) == (1, 0) else 1.0


def operation(rank, stage, step, kind, place, begin, end):
    return {
        "dp_rank": rank, "stage": stage, "step": step, "optype": kind, "seq_id": place,
        "start_ts": begin, "duration": end - begin,
    }  # fmt: skip


def operations(longer=evenly, steps=2):
    """Return a trace; `longer`: by which factor the compute of a worker takes longer."""
    rows = []
    for step in range(steps):
        last = {(rank, stage): end for rank in (0, 1)
                for stage, end in enumerate(_of_rank(rows, rank, step, longer))}  # fmt: skip
        reduced = [max(last[rank, stage] for rank in (0, 1)) + SYNC_S for stage in (0, 1)]
        for (rank, stage), begin in last.items():
            ends = (reduced[stage], max(reduced), max(reduced))
            for kind, end in zip(AFTER, ends, strict=True):
                rows.append(operation(rank, stage, step, kind, 0, begin, end))
                begin = end  # noqa: PLW2901 -- one after the other
    return pl.DataFrame(rows)


def _of_rank(rows, rank, step, longer):
    """Add a rank's compute and transfers to `rows`; return when compute of each stage ends."""

    def add(kind, stage, place, begin, end):
        rows.append(operation(rank, stage, step, kind, place, begin, end))
        return end

    def times(stage, micro_batch):
        return longer(rank, stage, micro_batch, step)

    # both forward, both backward: stage 1 begins with what stage 0 has sent
    sent, free = 0.0, 0.0
    for m in (0, 1):
        sent = add("forward-compute", 0, m, sent, sent + FORWARD_S * times(0, m))
        add("forward-send", 0, m, sent, max(sent, free))
        begin = add("forward-recv", 1, m, free, max(sent, free))
        free = add("forward-compute", 1, m, begin, begin + FORWARD_S * times(1, m))
    back = sent
    for m in (0, 1):
        free = add("backward-compute", 1, m, free, free + BACKWARD_S * times(1, m))
        add("backward-send", 1, m, free, max(free, back))
        begin = add("backward-recv", 0, m, back, max(free, back))
        back = add("backward-compute", 0, m, begin, begin + BACKWARD_S * times(0, m))
    return back, free


def batches(folder, frame, options=None):
    path = folder / "pretrain.parquet"
    frame.write_parquet(path)
    assert recognise(path) is OperationTrace
    found = {b.table: b for b in OperationTrace(path, options or ReadOptions()).extract()}
    rejects = [{"reason": r.reason} for b in found.values() for r in b.rejects]
    return {"rejects": rejects, **{name: b.rows.to_dicts() for name, b in found.items()}}


def parts_of_the_excess(found):
    """Return what stages, workers, micro-batches, transfers and late starts add to the ideal."""
    run = found["step_replays"][0]
    names = ("ideal_s", "stage_means_s", "worker_means_s", "compute_s", "undelayed_s", "recorded_s")
    return [round(b - a, 6) for a, b in pairwise([run[name] for name in names])]


def test_even_workers_are_at_the_ideal(tmp_path):
    found = batches(tmp_path, operations())

    run = found["step_replays"][0]
    assert run["run_id"] == "pretrain"
    assert (run["data_ranks"], run["stages"], run["steps"]) == (2, 2, 2)
    assert run["recorded_s"] == pytest.approx(STEP_S)
    assert run["ideal_s"] == pytest.approx(STEP_S)
    assert run["forward_backward_correlation"] is None
    assert parts_of_the_excess(found) == [0, 0, 0, 0, 0]


def test_a_slow_stage_a_slow_worker_and_a_long_micro_batch_are_distinguished(tmp_path):
    slow = (
        lambda _rank, stage, *_: 2.0 if stage == 1 else 1.0, slow_worker,
        lambda rank, _s, m, step: 2.0 if m == (rank + step) % 2 else 1.0,
    )  # fmt: skip
    found = [batches(tmp_path, operations(longer)) for longer in slow]
    stage, _, turns = found

    assert [max(range(5), key=parts_of_the_excess(one).__getitem__) for one in found] == [0, 1, 2]
    assert stage["step_replays"][0]["slowest_stage"] == 1
    assert turns["step_replays"][0]["forward_backward_correlation"] == pytest.approx(1)


def test_the_worker_that_is_slow_costs_most_and_steps_without_it_are_short(tmp_path):
    found = batches(tmp_path, operations(slow_worker))

    alone = {
        (row["dp_rank"], row["stage"]): row["step_s"]
        for row in found["replayed_parts"]
        if row["part"] == "worker"
    }
    assert max(alone, key=alone.__getitem__) == (1, 0)
    run = found["step_replays"][0]
    # compute at its mean is 5/4 as long; without the slow worker the other ranks' own time is left
    assert run["ideal_s"] == pytest.approx(9 * 1.25 + SYNC_S)
    assert run["without_slowest_workers_s"] < run["undelayed_s"]


def test_a_late_start_is_no_slow_operation(tmp_path):
    late = operations().with_columns(
        pl.when(pl.col("optype") == "optimizer").then(pl.col("start_ts") + 1).otherwise("start_ts")
        .alias("start_ts")
    )  # fmt: skip

    assert parts_of_the_excess(batches(tmp_path, late)) == [0, 0, 0, 0, 1]


def test_the_step_that_is_drawn_has_both_timelines(tmp_path):
    found = batches(tmp_path, operations(), ReadOptions(run_id="mine"))

    assert found["step_replays"][0]["run_id"] == "mine"
    rows = found["replayed_operations"]
    assert max(row["end_s"] for row in rows) == pytest.approx(STEP_S)
    place = ("backward-compute", 1, 0)
    last = next(r for r in rows if (r["operation"], r["place"], r["stage"]) == place)
    assert last["start_s"] == pytest.approx(last["ideal_start_s"])


def test_steps_that_are_not_whole_and_rows_that_are_no_operation_are_rejected(tmp_path):
    whole = operations(steps=3)
    broken = whole.filter(~((pl.col("step") == 2) & (pl.col("optype") == "optimizer")))
    odd = broken.head(1).with_columns(optype=pl.lit("<b>nap</b>"), duration=pl.lit(float("nan")))

    found = batches(tmp_path, pl.concat([broken, odd]))

    assert found["step_replays"][0]["steps"] == 2
    reasons = [reject["reason"] for reject in found["rejects"]]
    assert len(reasons) == 2
    assert f"row {broken.height + 1} has no known operation" in reasons[0]
    assert "step 2 lacks operations" in reasons[1]


def test_a_shape_that_is_not_modelled_is_refused(tmp_path):
    frame = operations()
    sends = frame.filter(pl.col("optype") == "forward-send")
    extra = sends.with_columns(seq_id=pl.lit(7, dtype=pl.Int64))

    with pytest.raises(IngestError, match="3 forward-send and 2 forward-compute"):
        batches(tmp_path, pl.concat([frame, extra.unique(["dp_rank", "stage", "step"])]))
