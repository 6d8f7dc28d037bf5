"""Series of GPUs for charts: bins, holes, peers; metrics without a column, and their page."""

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from tests.queries.conftest import START
from tests.tables import each, gives

from goodput_app.dashboard.data import metrics, node_axis, other_metrics
from goodput_app.dashboard.figures import other_metrics as figures
from goodput_app.process.store import use_store
from goodput_queries.scope import Scope

pytestmark = pytest.mark.usefixtures("used")
START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
WINDOW = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)
AFTER_A_MINUTE = replace(WINDOW, from_ms=START_MS + 60_000)
HOSTILE = "<b>x</b> [y](http://evil) $z$"
OTHERS = {  # metric: values of each GPU every quarter of an hour
    "ecc_corrected_volatile_total": {"GPU-a": (10, 14, 3, 5), "GPU-b": (7, 7, 7, 7)},
    "power_limit_w": {"GPU-a": (700, 700, 400, 400), "GPU-b": (500, 500, 500, 500)},
    HOSTILE: {"GPU-a": (1, 2, 3, 4)},
}


@pytest.fixture(scope="module")
def world(made):
    """Give two GPUs that are read every 30 s for an hour: at 100 W rising, and at 400 W.

    They have a counter that is reset, a gauge, and a metric of nobody's catalogue.
    """
    for metric, of_gpus in OTHERS.items():
        for gpu, values in of_gpus.items():
            made.counted(gpu, metric, zip(range(0, 3600, 900), values, strict=False), "test")
    for i, (gpu, watts) in enumerate((("GPU-a", 100.0), ("GPU-b", 400.0))):
        made.listed("n", gpu, "test", gpu_index=i)
        made.readings(gpu, range(0, 3600, 30), "test", power_w=lambda s, w=watts: w + s / 60,
                      clocks_event_reasons=lambda s: 4 if s < 900 else 0)  # fmt: skip
    made.store.build()
    return made.store


def test_a_lane_says_how_much_of_its_bin_the_ledger_has_in_each_category(evidence):
    """Of 40 minutes a job held the GPU for 30, of the other 20 none."""
    made = evidence
    made.node("n", 1)
    made.watched(3600)
    made.job("7", 0, 1800, ["n"], 1)
    made.store.build()
    use_store(made.store)

    found = metrics.categories(WINDOW, metrics.Resolution(2_400_000, is_raw=True))

    assert found.select("category", "below_ratio", "share_ratio", "end_at").rows() == [
        ("unknown", 0.0, 0.75, made.at(2400)),
        ("idle_no_demand", 0.75, 0.25, made.at(2400)),
        ("idle_no_demand", 0.0, 1.0, made.at(3600)),
    ]
    bins, _ = node_axis.categories(WINDOW)  # as the page of a GPU draws them
    sums = bins.group_by("category").agg(pl.col("gpu_ms").sum())
    assert dict(sums.rows()) == {"unknown": 1_800_000, "idle_no_demand": 1_800_000}


@pytest.mark.parametrize("hours", [0.01, 1, 12, 24, 100, 24 * 7, 24 * 365, 24 * 3650])
@pytest.mark.parametrize("gpus", [1, 8, 64])
def test_a_trace_never_has_too_many_points(hours, gpus):
    window_ms = int(hours * HOUR_MS)

    read = metrics.resolution(window_ms, gpus)

    assert window_ms / read.bin_ms <= metrics.POINTS_MAX
    assert read.is_raw or read.bin_ms % metrics.ROLLED_UP_MS == 0


def test_short_windows_read_samples_and_long_ones_the_roll_up():
    assert metrics.resolution(8 * HOUR_MS, 8) == metrics.Resolution(60_000, is_raw=True)
    assert metrics.resolution(24 * HOUR_MS, 8) == metrics.Resolution(600_000, is_raw=False)
    assert metrics.resolution(7 * 24 * HOUR_MS, 8) == metrics.Resolution(1_800_000, is_raw=False)


def test_samples_and_roll_up_agree():
    """Of the page of one GPU, whose peers are other GPUs."""
    of_one = replace(WINDOW, gpu_uuid="GPU-a", node="n", cluster="c")
    raw, rolled = (
        metrics.gpu_series(of_one, ["GPU-a", "GPU-b"], metrics.Resolution(600_000, is_raw=is_raw))
        for is_raw in (True, False)
    )

    columns = [*raw.columns]
    assert raw.height == 12
    assert raw.select(columns).equals(rolled.select(columns))
    first = raw.row(0, named=True)
    assert (first["power_w"], first["power_w_min"], first["power_w_max"]) == (104.75, 100.0, 109.5)
    assert first["power_w_last"] == 109.5
    assert raw.filter(gpu_uuid="GPU-a")["power_cap"].to_list() == [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    assert first["sm_active_ratio"] is None


def series(*rows):
    found = [
        {"gpu_uuid": gpu, "gpu_instance": "", "at": START + timedelta(seconds=s), "power_w": watts}
        for gpu, s, watts in rows
    ]
    return pl.DataFrame(found)


def at(second):
    return START + timedelta(seconds=second)


def test_a_line_breaks_where_samples_are_missing():
    own = series(*(("GPU-a", s, 1.0) for s in (0, 10, 20, 60, 70)))

    found = metrics.with_holes(own, ["power_w"])

    assert found["at"].to_list() == [at(s) for s in (0, 10, 20, 30, 60, 70)]
    assert found["power_w"].to_list() == [1.0, 1.0, 1.0, None, 1.0, 1.0]


FEW = series(
    *(("GPU-a", s, 999.0) for s in (0, 10)), *(("GPU-b", s, 100.0 + s) for s in (0, 10)),
    ("GPU-c", 0, 300.0), ("GPU-c", 10, None),
)  # fmt: skip
MANY = series(*((f"GPU-{i}", 0, float(i)) for i in range(12)))

test_the_band_of_peers = gives(
    lambda every, gpu: metrics.peers_band(every, gpu, "power_w").rows(),
    {"a few: least and most": (FEW, "GPU-a", [(at(0), 100.0, 300.0), (at(10), 110.0, 110.0)]),
     "many: percentiles": (MANY, "GPU-11", [(at(0), pytest.approx(1.0), pytest.approx(9.0))])},
)  # fmt: skip


def test_the_list_has_meaning_unit_and_kind_where_they_are_known():
    rows = {row["metric"]: row for row in other_metrics.catalogue(AFTER_A_MINUTE).to_dicts()}

    assert rows["ecc_corrected_volatile_total"]["good_range"] == "no lasting rise"
    assert rows["power_limit_w"]["unit"] == "W"
    assert (rows["power_limit_w"]["gpus"], rows["power_limit_w"]["samples"]) == (2, 6)
    assert rows[HOSTILE]["meaning"] is None
    assert other_metrics.limits(AFTER_A_MINUTE, "GPU-a") == {"power_limit_w": 400.0}, "the last"


@each(
    # 4 errors before the driver was loaded again, then 3 and 2; the other GPU has none
    ("ecc_corrected_volatile_total", [4.0, 3.0, 2.0], [0.0] * 3, [4.0, 3.0, 2.0]),
    ("power_limit_w", [600.0, 450.0, 450.0], [500.0, 400.0, 400.0], [700.0, 500.0, 500.0]),
)
def test_a_metric_over_time_shows(metric, mean, low, high):
    found = other_metrics.over_time(AFTER_A_MINUTE, metric, is_counter=metric.endswith("total"))
    assert found.select("mean", "low", "high").rows() == list(zip(mean, low, high, strict=True))


def test_a_unit_is_on_the_axis_and_an_unknown_one_says_so():
    rows = other_metrics.over_time(AFTER_A_MINUTE, "power_limit_w", is_counter=False)
    units = ({"unit": "W", "kind": "gauge"}, {"unit": None, "kind": None})

    drawn = [figures.over_time(rows, unit, (START, START + timedelta(hours=1))) for unit in units]

    assert [one.layout.yaxis.title.text for one in drawn] == ["W", "unit not known"]


@pytest.mark.parametrize("metric", [None, HOSTILE])
def test_the_page_lists_metrics_and_draws_the_picked_one(world, visit, metric):
    app = visit(world, "metric_explorer", **({"metric": metric} if metric else {}))
    assert len(app.get("plotly_chart")) == (metric is not None)
    assert not any("](http" in str(part.value) for part in app.subheader)
    assert "not in the catalogue" in app.dataframe[0].value.to_csv()
