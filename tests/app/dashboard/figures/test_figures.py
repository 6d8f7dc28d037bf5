"""What is in the charts: sums, order, patterns, escaped names, few points."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.dashboard.figures import pipelines, waste
from goodput_app.dashboard.figures import runs as figures_runs

START = datetime(2026, 11, 20, 12, 30)  # noqa: DTZ001 -- UTC, as the database has it
HOSTILE = "<img src=x onerror=alert(1)>\"|'%{y}"
FACTS = {
    "productive": ("Productive", "productive", "held"),
    "step_unsplit": ("Training step (communication not measured)", "step", "held"),
    "startup": ("Start-up", "startup", "held"),
    "lost_work": ("Lost work", "lost", "held"),
    "unknown": ("Unknown", "unknown", "held"),
    "idle_no_demand": ("Idle, no demand", "free", "free"),
    "down": ("Down", "failed", "not_available"),
}


def ledger(**gpu_ms):
    """Give marts.ledger_by_category with these categories."""
    return pl.DataFrame(
        [{"category": category, "label": FACTS[category][0], "colour": FACTS[category][1],
          "group": FACTS[category][2],
          "kind": "goodput" if category in ("productive", "step_unsplit") else "badput",
          "definition": "What it means", "gpu_ms": amount, "cost": None}
         for category, amount in gpu_ms.items()],
        schema_overrides={"cost": pl.Float64},
    )  # fmt: skip


def bars(figure):
    """Return the traces of a figure by name."""
    return {trace.name: trace for trace in figure.data}


def points(figure):
    """Return how many points a figure draws."""
    return sum(len(trace.x) for trace in figure.data)


FULL = ledger(
    productive=600_000, step_unsplit=300_000, startup=200_000, idle_no_demand=400_000, down=100_000
)


def over_time(rows):
    """Give marts.ledger_over_time: seconds after START, category, GPU-ms."""
    return pl.DataFrame(
        [{"bucket_at": START + timedelta(seconds=at), "category": category, "gpu_ms": gpu_ms}
         for at, category, gpu_ms in rows],
        schema={"bucket_at": pl.Datetime("us"), "category": pl.String, "gpu_ms": pl.Int64},
    )  # fmt: skip


def test_the_stack_over_time_is_gpus_and_a_bucket_that_the_window_cuts_is_not_thinner():
    rows = [(0, "productive", 3000), (0, "step_unsplit", 500), (2, "step_unsplit", 4000)]
    cut = [(0, "productive", 2000), (4, "productive", 8000)]
    window = (START, START + timedelta(seconds=3))

    drawn = figures.categories_over_time(over_time(rows), FULL, 1000, window)
    window = (window[1], START + timedelta(seconds=6))
    within = figures.categories_over_time(over_time(cut), FULL, 4000, window)

    productive, unsplit = drawn.data
    assert productive.y == (3, 0, 0, 0)  # nothing in the second bucket is no bridge
    assert unsplit.y == (0.5, 0, 4, 4)
    assert unsplit.fillpattern.shape == theme.style("step").hatch
    assert {trace.stackgroup for trace in drawn.data} == {"gpus"}
    assert bars(within)["Productive"].y == (2, 4, 4)


def test_the_stack_over_time_keeps_its_sums_where_buckets_are_merged():
    rows = [(at, category, 500) for at in range(1000) for category in FACTS]
    window = (START, START + timedelta(seconds=1000))

    drawn = figures.categories_over_time(over_time(rows), FULL, 1000, window)

    assert points(drawn) <= figures.MAX_POINTS * 1.05
    for trace in drawn.data:
        assert trace.y == pytest.approx([0.5] * len(trace.y))
    assert "GPUs (mean over" in drawn.layout.yaxis.title.text


def test_the_ledger_bar_adds_up_to_what_was_held():
    drawn = figures.ledger_bar(FULL)
    assert sum(trace.x[0] for trace in drawn.data) == pytest.approx(1_600_000 / 60_000)
    assert drawn.data[0].name == "Productive 37.5 %"
    (hatched,) = drawn.layout.annotations  # whose text no line crosses
    assert (hatched.text, hatched.x, drawn.data[1].text) == ("18.8 %", 12.5, ("",))
    assert drawn.layout.xaxis.title.text == "GPU-min"


def steps():
    """Give marts.train_steps: five steps, the third late, the fourth waiting, the last lost."""
    return pl.DataFrame({
        "attempt": [0] * 5, "step": [1, 2, 3, 4, 5], "step_s": [0.1, 0.1, 0.2, 1.6, 0.1],
        "end_at": [START + timedelta(seconds=i) for i in range(5)],
        "median_step_s": [0.1] * 5, "data_s": [0.0, None, 0.0, 1.5, 0.0],
        "straggler_rank": [None, None, 3, None, None], "fate": [*["kept"] * 4, "lost"],
    })  # fmt: skip


def test_step_times_mark_late_ranks_data_waits_and_lost_steps():
    named = bars(figures.step_times(steps()))

    assert named["step"].y == (0.1, 0.1, 0.2, 1.6, None)
    assert named["rolled-back step"].y == (None, None, None, None, 0.1)
    assert named["median of the attempt"].y == (0.1,) * 5
    assert [list(c) for c in named["straggler"].customdata] == [[3, ", rank 3"]]
    assert named["data stall"].y == (1.6,)


def test_late_ranks_say_what_they_cost_and_where():
    late = pl.DataFrame({
        "rank": [1, 3], "node": [HOSTILE, "vm"], "gpu_index": [1, None], "first_step": [169, 314],
        "last_step": [220, 347], "start_at": [START] * 2,
        "end_at": [START + timedelta(seconds=9)] * 2, "imposed_wait_gpu_s": [9.21, None],
    })  # fmt: skip

    bar = figures_runs.straggler_lanes(late).data[0]

    assert bar.text == ("9.2 GPU-s", "not known")
    assert bar.y[1] == "rank 3, vm GPU ?"
    assert "<" not in bar.y[0]


def test_runs_of_one_name_keep_a_bar_each():
    keys = ["a/x", "b/x"]
    runs = pl.DataFrame({"run_key": keys, "run_name": ["x"] * 2, "held_ms": [60_000, 120_000]})
    parts = pl.DataFrame({
        "run_key": [*keys, "b/x"], "category": ["productive", "productive", "startup"],
        "label": ["Productive", "Productive", "Start-up"],
        "colour": ["productive", "productive", "startup"], "gpu_ms": [60_000] * 3,
    })  # fmt: skip

    drawn = figures_runs.run_ledgers(runs, parts)

    assert bars(drawn)["Productive"].y == ("a/x", "b/x")
    assert drawn.layout.yaxis.ticktext == ("x", "x")
    assert sum(sum(trace.x) for trace in drawn.data) == pytest.approx(3.0)


def gaps(cost):
    """Give sums of gaps: four of two causes, one of them priced or not."""
    return pl.DataFrame({
        "label": ["Start-up", "Start-up", HOSTILE], "colour": ["startup", "startup", "free"],
        "least_s": [1, 10, 3600], "gaps": [1, 2, 1], "gpu_ms": [500, 20_000, 600_000], "cost": cost,
        "unpriced": [n * (price is None) for n, price in zip((1, 2, 1), cost, strict=True)],
    }, schema_overrides={"cost": pl.Float64})  # fmt: skip


def test_causes_are_ranked_by_money_where_all_has_a_price_and_else_by_time():
    by_money, by_time = (waste.causes(gaps([1.0, 2.0, last])) for last in (0.5, None))

    assert by_money.data[0].y == ("Start-up",)
    assert by_money.layout.xaxis.title.text == "USD"
    assert by_money.data[0].text[0] == "3 gaps, 86 % cumulative"
    # a narrow screen has no room for the name beside the bar, nor for the amount behind it
    assert by_money.layout.annotations[0].text == "Start-up: &#36;3.00"
    assert by_time.layout.xaxis.title.text == "idle GPU-min"
    assert by_time.data[0].x[0] == pytest.approx(10.0)
    assert "<" not in by_time.data[0].y[0]


def hours(cluster, ratio):
    """Give a row of marts.coverage_by_hour."""
    row = {"cluster": cluster, "source": "telemetry", "hour_at": START, "gpus_expected": 4}
    return {**row, "coverage_ratio": ratio}


def test_coverage_that_is_not_known_is_a_hole_and_of_a_day_few_hours_are_named():
    rows = [hours("a", 1.0), hours("b", 0.0), hours("c", None)]
    heat = waste.coverage(pl.DataFrame(rows)).data[0]
    begin = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC, as the database has it
    day = [hours("a", 1.0) | {"hour_at": begin + timedelta(hours=n)} for n in range(24)]
    axis = waste.coverage(pl.DataFrame(day)).layout.xaxis

    assert heat.y == ("c: telemetry", "b: telemetry", "a: telemetry")
    assert list(map(list, heat.z)) == [[None], [0], [100]]
    assert list(axis.ticktext) == ["12:00<br>Nov 20", "17:00", "22:00", "03:00<br>Nov 21", "08:00"]
    assert axis.tickangle == 0


def test_workers_say_what_they_cost_and_operations_are_drawn_as_recorded_and_ideal():
    frame = pl.DataFrame({
        "dp_rank": [0, 1, 1], "stage": [0, 0, 1], "slowdown_ratio": [1.0, 1.25, 1.5],
        "excess_gpu_ms": [0.0, 3_600_000.0, None], "excess_cost": [0.0, 2.0, None],
    })  # fmt: skip
    operations = pl.DataFrame({
        "stage": [0, 1], "operation": ["forward-compute", "forward-recv"],
        "start_s": [0.0, 1.0], "end_s": [1.5, 2.0],
        "ideal_start_s": [0.0, 0.5], "ideal_end_s": [1.0, 1.0],
    })  # fmt: skip

    heatmap = pipelines.workers(frame).data[0]
    drawn = bars(pipelines.timeline(operations))

    assert np.round(heatmap.z, 3).tolist()[0] == [0, 25]
    assert np.isnan(heatmap.z[1][0]), "a worker without a row is a hole"
    assert heatmap.customdata[0][1].startswith("1.0 GPU-h of the run")
    assert list(drawn["forward"].y) == ["stage 0 recorded", "stage 0 ideal"]
    assert list(drawn["forward"].x) == [1.5, 1.0]
    assert list(drawn["transfer or wait for it"].base) == [1.0, 0.5]
