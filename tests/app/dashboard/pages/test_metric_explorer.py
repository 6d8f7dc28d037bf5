"""The explorer of metrics without a column of their own: the list, and one of them over time."""

from datetime import timedelta

import pytest
from tests.queries.conftest import START

from goodput_app.dashboard.data import other_metrics
from goodput_app.dashboard.figures import other_metrics as figures
from goodput_queries.scope import Scope

pytestmark = pytest.mark.usefixtures("used")
START_MS = 1_800_000_000_000
WINDOW = Scope(from_ms=START_MS + 60_000, to_ms=START_MS + 3_600_000)
SPAN = (START, START + timedelta(hours=1))
HOSTILE = "<b>x</b> [y](http://evil) $z$"


@pytest.fixture(scope="module")
def world(made):
    """Give two GPUs with a counter that is reset, a gauge, and a metric of nobody's catalogue."""
    gpus = ("GPU-a", "GPU-b")
    made.load("gpus", [
        {"cluster": "c", "node": "n", "gpu_uuid": gpu, "gpu_index": i, "valid_from_at": START}
        for i, gpu in enumerate(gpus)
    ])  # fmt: skip
    values = {
        "ecc_corrected_volatile_total": {"GPU-a": (10, 14, 3, 5), "GPU-b": (7, 7, 7, 7)},
        "power_limit_w": {"GPU-a": (700, 700, 400, 400), "GPU-b": (500, 500, 500, 500)},
        HOSTILE: {"GPU-a": (1, 2, 3, 4)},
    }
    made.load("gpu_samples_other", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": made.at(900 * nr), "metric": metric,
         "value": float(value)}
        for metric, of_gpus in values.items()
        for gpu, row in of_gpus.items()
        for nr, value in enumerate(row)
    ])  # fmt: skip
    seconds = made.every(0, 3600, 60)
    made.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": made.at(s), "engine_active_ratio": 0.5}
        for gpu in gpus for s in seconds
    ])  # fmt: skip
    made.store.build()
    return made.store


def test_the_list_has_meaning_unit_and_kind_where_they_are_known():
    rows = {row["metric"]: row for row in other_metrics.catalogue(WINDOW).to_dicts()}

    assert rows["ecc_corrected_volatile_total"]["kind"] == "counter"
    assert rows["power_limit_w"]["unit"] == "W"
    assert (rows["power_limit_w"]["gpus"], rows["power_limit_w"]["samples"]) == (2, 6)
    assert rows[HOSTILE]["meaning"] is None


@pytest.mark.parametrize(
    ("metric", "mean", "low", "high"),
    [
        # 4 errors before the driver was loaded again, then 3 and 2; the other GPU has none
        ("ecc_corrected_volatile_total", [4.0, 3.0, 2.0], [0.0] * 3, [4.0, 3.0, 2.0]),
        ("power_limit_w", [600.0, 450.0, 450.0], [500.0, 400.0, 400.0], [700.0, 500.0, 500.0]),
    ],
    ids=["its increase over a reset", "mean and range of a gauge"],
)
def test_a_metric_over_time_shows(metric, mean, low, high):
    found = other_metrics.over_time(WINDOW, metric, is_counter=metric.endswith("total"))

    assert found.select("mean", "low", "high").rows() == list(zip(mean, low, high, strict=True))


def test_the_limits_of_a_gpu_are_those_it_last_reported():
    assert other_metrics.limits(WINDOW, "GPU-a") == {"power_limit_w": 400.0}


def test_a_unit_is_on_the_axis_and_an_unknown_one_says_so():
    series = other_metrics.over_time(WINDOW, "power_limit_w", is_counter=False)

    known = figures.over_time(series, {"unit": "W", "kind": "gauge"}, SPAN)
    unknown = figures.over_time(series, {"unit": None, "kind": None}, SPAN)

    assert known.layout.yaxis.title.text == "W"
    assert unknown.layout.yaxis.title.text == "unit not known"


@pytest.mark.parametrize("metric", [None, HOSTILE])
def test_the_page_lists_metrics_and_draws_the_picked_one(world, visit, metric):
    app = visit(world, "metric_explorer", **({"metric": metric} if metric else {}))

    assert len(app.get("plotly_chart")) == (metric is not None)
    assert not any("](http" in str(part.value) for part in app.subheader)
    assert "not in the catalogue" in app.dataframe[0].value.to_csv()
