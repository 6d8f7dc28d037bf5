"""The Overview's waste by team and what moved: rows add up to the tiles."""

import polars as pl
import pytest

from goodput_app.dashboard.data.ledger_groups import OTHERS, TOTAL, by_team, moved

HOUR_MS = 3_600_000


def waste(*rows):
    """Give rows of marts.waste_by_team: team, label, gpu_ms, cost."""
    return pl.DataFrame(
        rows, ["team", "label", "gpu_ms", "cost"], orient="row",
        schema_overrides={"cost": pl.Float64, "team": pl.String},
    )  # fmt: skip


def test_what_moved_adds_up_to_the_millisecond_and_the_cent():
    now = waste(*((f"t{n}", "Failures", 10 * n, n / 3) for n in range(9)), (None, "Idle", 7, 0.005))
    then = waste(("t8", "Failures", 3, 5.0), ("gone", "Failures", 400, 0.125))

    rows = moved(now, then, decimals=2, most=4)

    total = rows.row(-1, named=True)
    assert (total["label"], rows["label"][-2], rows.height) == (TOTAL, OTHERS, 6)
    assert rows["change_ms"][:-1].sum() == total["change_ms"] == 360 + 7 - 403
    assert total["change_cost"] == pytest.approx(6.88), "12.005 - 5.125"
    cents = [round(100 * cost) for cost in rows["change_cost"]]
    assert sum(cents[:-1]) == cents[-1]
    assert rows["team"][:2].to_list() == ["t8", "t7"], "by the size of the change: -2.33, 2.33"


def test_what_moved_without_a_price_is_time_alone():
    rows = moved(waste(("a", "Failures", 5, None)), waste(("a", "Failures", 2, None)), 2, 4)

    assert rows["change_ms"].to_list() == [3, 3]
    assert rows["change_cost"].to_list() == [None, None]
    assert moved(waste(("a", "x", 5, 1.0)), waste(("a", "x", 5, 1.0)), 2, 4).is_empty()


def test_by_team_says_who_caused_what():
    rows = pl.DataFrame(
        {
            "team": ["nlp", "nlp", None, "cv"],
            "blame": ["own", "platform", "reservation", "own"],
            "gpu_ms": [5, 2, 9, 1],
            "cost": [1.0, None, 2.5, None],
        }
    )

    idle = pl.DataFrame({"team": ["nlp", None], "idle_ms": [3, 4]})

    teams = {row["team"]: row for row in by_team(rows, idle).to_dicts()}

    assert list(teams) == [None, "nlp", "cv"]
    assert (teams["nlp"]["own_waste_ms"], teams["nlp"]["platform_waste_ms"]) == (5, 2)
    assert (teams["nlp"]["own_waste_cost"], teams["nlp"]["platform_waste_cost"]) == (1.0, 0.0)
    assert (teams[None]["unallocated_ms"], teams[None]["own_waste_cost"]) == (9, 0.0)
    assert [teams[name]["executing_idle_ms"] for name in ("nlp", "cv", None)] == [3, None, None]
    assert teams["cv"]["wasted_cost"] is None, "not known, which is not zero"


def test_the_tiles_have_lines_over_time(priced, visit):
    app = visit(priced)

    lines = {metric.label: list(metric.proto.chart_data) for metric in app.metric}
    assert set(lines["Capacity"]) == {4.0 * HOUR_MS}, "of whole hours"
    assert max(lines["Allocated (% of available)"]) == 1
