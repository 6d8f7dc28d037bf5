"""The Fleet page, in-process, on a made-up fleet with racks; and what it reads at each level."""

import json

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, page_of, table, texts, tile
from tests.queries.conftest import Evidence
from tests.tables import each

from goodput_app.dashboard.data import fleet, metrics
from goodput_queries.scope import Scope

pytestmark = pytest.mark.usefixtures("used")
PAGE = "fleet_map"
START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
WINDOW = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)
ROLLED_UP = metrics.Resolution(1_800_000, is_raw=False)


@pytest.fixture(scope="module")
def world(made):
    """Give three nodes of two GPUs: two in a rack with a hostile name, one in none.

    A job has both GPUs of `a` for half an hour; those of `a` are read, and one of `b` is busy with
    no job. The second GPU of `a` is slowed by heat, and has an Xid 48.
    """
    for node in "abc":
        made.node(node, 2)
    made.add("node_racks", {"node": "a"}, {"node": "b"}, rack=HOSTILE)
    made.watched(HOUR_MS / 1000)
    made.job("7", 0, 1800, ["a"], 2, job_name=HOSTILE)
    for gpu, power, reasons in (("a#0", 300.0, 0), ("a#1", 400.0, 64), ("b#0", 200.0, 0)):
        made.readings(f"c/{gpu}", range(0, 3601, 60), "test", power_w=power,
                      gpu_temperature_c=power / 5, engine_active_ratio=0.5,
                      clocks_event_reasons=reasons, memory_used_bytes=2**31)  # fmt: skip
    made.xid("a", 48, 1900, "test", gpu_uuid="c/a#1", cluster=None)
    made.store.build()
    return made.store


page = page_of("world", PAGE)


def cells(app):
    traces = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    return {mark[0] for trace in traces if trace["type"] == "bar" for mark in trace["customdata"]}


def test_every_gpu_has_a_cell_that_opens_it_and_what_is_free_a_reason(page):
    assert cells(page) == {f"gpu:c/{node}#{i}" for node in "abc" for i in (0, 1)}
    assert "Each cell: a GPU, at 2027-01-15 09:00:00 UTC" in texts(page)
    said = [text.value.strip("*") for text in page.markdown]
    assert "no node down, 6 h100 free in 3 whole nodes" in said
    assert tile(page, "Not available") == "0 GPUs"
    assert "Rack unknown" in "".join(chart.proto.spec for chart in page.get("plotly_chart"))
    free = table(page, "why")
    assert (free["why"].to_list(), free["largest_block"].to_list()) == (["Whole node"], [6])


@pytest.mark.parametrize(("rack", "nodes"), [(HOSTILE, "ab"), ("", "c")], ids=["named", "none"])
def test_a_rack_has_its_gpus_alone_as_nodes_without_a_rack_have(world, visit, rack, nodes):
    of_rack = {f"gpu:c/{node}#{i}" for node in nodes for i in (0, 1)}
    assert cells(visit(world, PAGE, rack=f"c/{rack}")) == of_rack


def test_a_rack_that_is_not_there_offers_all_and_a_metric_is_named(world, visit):
    app = visit(world, PAGE, rack="c/nowhere", show="tensor_active_ratio")
    assert "No GPU of this rack" in app.info[0].value

    next(button for button in app.button if button.label == "All racks").click().run()

    assert "No source measured Tensor active" in app.info[0].value
    assert app.get("plotly_chart")


@each({"show": HOSTILE, "sort": HOSTILE}, {"sort": "deviation", "show": "nvlink_rx_bytes_per_s"})
def test_any_choice_in_the_link_is_drawn(world, visit, given):
    assert len(cells(visit(world, PAGE, **given))) == 6


def test_a_row_of_a_rack_and_of_a_busy_gpu_whatever_the_filters_of_owners(world, visit):
    app = visit(world, PAGE, busy="c/b#0", team="team")

    assert len(cells(app)) == 6
    assert "team and run filters do not apply" in texts(app)
    racks = table(app, "rack")
    assert sorted(racks["nodes"]) == [1, 2]
    assert "Rack unknown" in racks["rack"].to_list()
    assert table(app, "last_at")["gpu_uuid"].to_list()[:1] == ["c/b#0"]
    assert [link.proto.label for link in app.get("page_link") if "Open" in link.proto.label]


@each(
    ("gpu", ["c/a#0", "c/b#1"], {"c/a#0": 300.0}),
    ("node", ["c/a", "c/c"], {"c/a": 350.0}),
    ("rack", [f"c/{HOSTILE}", "c/"], {f"c/{HOSTILE}": 300.0}),
)
def test_rows_of_each_level_have_their_bins(level, rows, power):
    found = fleet.metric(WINDOW, level, rows, "power_w", ROLLED_UP)
    categories = fleet.categories(WINDOW, level, rows[:1], ROLLED_UP.bin_ms, rows[1:])

    values = found.filter(found["at"] == found["at"].min()).select("key", "value").rows()
    assert dict(values) == power
    lengths = categories.group_by("key", "at").agg(pl.col("gpu_ms").sum()).sort("key", "at")
    gpus = {"gpu": (1, 1), "node": (2, 2), "rack": (2, 4)}[level]  # of all others, of the first
    assert set(lengths["key"]) == {fleet.OTHERS, rows[0]}
    assert lengths["gpu_ms"].to_list() == [n * HOUR_MS // 2 for n in gpus for _ in range(2)]


@each(
    ("gpu", "c/a#1", {"throttled_ratio": 1, "memory_used_bytes": 2**31, "errors": 1}),
    ("gpu", "c/b#0", {"throttled_ratio": 0, "memory_used_bytes": 2**31, "errors": 0}),
    ("node", "c/a", {"throttled_ratio": 0.5, "memory_used_bytes": 2**31, "errors": 1}),
    ("node", "c/a", {"gpu_temperature_c": 80.0}),  # the hottest
)
def test_rows_have_throttling_memory_and_incidents(level, key, values):
    for name, value in values.items():
        assert fleet.metric(WINDOW, level, [key], name, ROLLED_UP)["value"][-1] == value


def test_a_gpu_that_is_not_read_has_no_health_others_are_compared_and_a_run_has_a_bar():
    states = {row["gpu_uuid"]: row for row in fleet.gpu_states(WINDOW).to_dicts()}
    (bar,) = fleet.allocations(WINDOW, None).to_dicts()

    assert [states[f"c/{gpu}"]["errors"] for gpu in ("a#1", "b#0", "c#0")] == [1, 0, None]
    assert fleet.metric(WINDOW, "gpu", ["c/c#0"], "errors", ROLLED_UP).is_empty()
    assert dict(fleet.deviations(WINDOW, "gpu", "power_w").rows()) == {"c/a#0": 100, "c/a#1": 100}
    assert (bar["run_id"], bar["gpus"], bar["end_at"]) == ("7", 2, Evidence.at(1800))
    assert fleet.allocations(WINDOW, ("c/b",)).is_empty()


@pytest.mark.parametrize("level", ["gpu", "node", "rack"])
def test_waste_of_rows_adds_up_to_the_waste_of_racks(level):
    wasted = fleet.racks(WINDOW)["wasted_ms"].sum()
    assert fleet.wasted(WINDOW, level)["wasted_ms"].sum() == wasted > 0
