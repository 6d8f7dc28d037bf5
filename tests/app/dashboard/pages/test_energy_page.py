"""The Energy page, in-process: on a made-up cluster, without counters, and with hostile names."""

import json
from decimal import Decimal

import pytest
from tests.app.opened_page import HOSTILE, links, page_of, table, texts
from tests.queries.conftest import at
from tests.tables import gives

from goodput_app.dashboard.data import energy
from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
HOURS = 2
PAGE = "power_and_carbon"


@pytest.fixture(scope="module")
def world(made):
    """Give two hours of a node of two GPUs: one has a team with a hostile name, one is free."""
    limits = {"power_limit_w": 700.0, "slowdown_temperature_c": 90.0}
    made.add("node_racks", node="a", rack=HOSTILE)
    made.watched(HOURS * 3600)
    made.job("1", 0, HOURS * 3600, ["a"], 1, account=HOSTILE)
    for i, (watts, active) in enumerate(((600.0, 0.9), (100.0, 0.0))):
        made.listed("a", f"GPU-{i}", "test", gpu_index=i, slurm_index=i, **limits)
        made.readings(f"GPU-{i}", range(0, HOURS * 3600 + 1, 60), "test", power_w=watts,
                      energy_j=lambda s, watts=watts: 1e6 + s * watts, gpu_temperature_c=60.0,
                      engine_active_ratio=active)  # fmt: skip
    one = Decimal(1)
    made.load("carbon", [
        {"g_per_kwh": Decimal(400), "pue": one, "server_ratio": one, "valid_to_at": at(3600)}
    ])  # fmt: skip
    made.store.build()
    return made.store


page = page_of("world", PAGE)


def bars(app):
    (chart,) = app.get("plotly_chart")
    traces = json.loads(chart.proto.spec)["data"]
    return {trace["name"]: trace for trace in traces if trace["type"] == "bar"}


def test_the_link_says_what_power_is_stacked_by_and_what_does_not_apply_is_named(world, visit):
    by_node = visit(world, PAGE, team=HOSTILE, by="node")
    by_rack = visit(world, PAGE, team=HOSTILE, by="rack")

    assert [name[:12] for name in (*bars(by_node), *bars(by_rack))] == ["a", "&lt;script&g"]
    said = "team and run does not apply to power by"
    assert f"{said} node" in texts(by_node)
    assert f"{said} rack" in texts(by_rack)
    assert "does not apply" not in texts(visit(world, PAGE, team=HOSTILE))


def test_a_picked_account_rack_and_node_have_their_figures_and_links(world, visit):
    picked = visit(world, PAGE, account=f"c|held|{HOSTILE}")

    assert table(picked, "energy_kwh")["energy_kwh"][0] == pytest.approx(1.2, rel=0.02)
    (cost,) = (params for label, params in links(picked).items() if label.startswith("Cost of"))
    assert cost["team"] == [HOSTILE]

    picked = visit(world, PAGE, **{"heat-margin": f"c|{HOSTILE}", "headroom": "c|a|h100"})
    rows = table(picked, "median_margin_c")
    assert (rows["rack"][0], rows["slowdown_margin_c"][0]) == (HOSTILE, 30)
    assert any(params["node"] == ["a"] for params in links(picked).values() if "node" in params)

    rows = table(picked, "p99_limit_percent")
    assert rows["p99_limit_percent"][0] == pytest.approx(100 * 600 / 700)
    assert rows["slowdown_margin_c"][0] == 30
    assert links(picked)["Open node a"]["node"] == ["a"]


def test_power_is_stacked_by_account_and_what_the_page_lacks_is_named(world, visit, page):
    first, *_, last = bars(page)
    assert (first[:14], last) == ("&lt;script&gt;", "Unallocated")
    rows = table(page, "carbon_kg")
    assert rows["carbon_kg"][0] == pytest.approx(0.24, rel=0.02)
    assert rows["unknown_carbon_kwh"][0] == pytest.approx(0.6, rel=0.02)
    assert "1 hour between 2027-01-15 09:00:00" in texts(page)
    assert "under two power caps" in texts(visit(world, PAGE, part="work"))
    assert "carbon-free share. It is the column `carbon_free_ratio`" in texts(page)
    assert "goodput ingest tariffs" in texts(page)
    assert not any("electricity_cost" in frame.value.columns for frame in page.dataframe)


test_of_many_gpus_the_roll_up_is_read_in_longer_buckets = gives(
    lambda hours, gpus: energy.bucket_ms(Scope(from_ms=0, to_ms=hours * HOUR_MS), gpus) / 60_000,
    (1, 4, 1), (1, 1_000, 10), (24, 2_000, 30), (24, 10_000, 60),
)  # fmt: skip
