"""Goodput objectives: what is attained, error budgets, burn rates, and when they are a finding."""

import pytest
from tests.queries.conftest import durable, steps

from goodput_queries.objectives.goodput import Objective, as_variable
from goodput_queries.scope import Scope

HOUR = 3600
HOUR_MS = HOUR * 1000
OBJECTIVES = (
    Objective(0.5, cluster="c", window_days=1),
    Objective(0.9, team="team"),
    Objective(0.5, team="nobody"),
)


def objectives(store, **scope):
    rows = store.read("from marts.goodput_objectives", scope=Scope(**scope)).to_dicts()
    return {row["name"]: row for row in rows}


def test_an_objective_burns_its_budget_when_gpus_are_of_no_use(evidence):
    evidence.job_on_a_node("1", 0, 5 * HOUR, 4, watched=12 * HOUR)
    ran = steps(1, 299, 60, 60.0)
    evidence.events("1", [*ran, durable(299, 5 * HOUR)])
    evidence.store.build()
    store = evidence.store
    assert objectives(store) == {}, "none is configured"
    store.variables["goodput_objectives"] = as_variable(OBJECTIVES)

    useful, held = store.read("select useful_ms, held_ms from marts.goodput_summary").row(0)
    found = objectives(store)
    of_cluster, of_team = found["c"], found["team"]
    capacity = 4 * 12 * HOUR_MS
    lost = capacity - useful - of_cluster["unsettled_ms"]
    # 12 of 24 hours; no use where half is allowed; there is no evidence of 24 hours
    expected = {"base_ms": capacity, "useful_ms": useful, "covered_ratio": 0.5, "spent_ms": lost,
                "budget_spent_ratio": pytest.approx(lost / (0.5 * capacity)), "burn_rate_1h": 2,
                "burn_rate_6h": 2, "burn_rate_24h": None}  # fmt: skip
    assert {name: of_cluster[name] for name in expected} == expected
    assert (of_team["base_ms"], of_team["attained_ratio"]) == (held, pytest.approx(useful / held))
    assert of_team["burn_rate_6h"] is None, "it had no GPU"
    assert found["nobody"]["attained_ratio"] is None

    # of a team only its own, of a part of the fleet none
    assert set(objectives(store, team="team")) == {"team"}
    assert objectives(store, node="a") == {}
