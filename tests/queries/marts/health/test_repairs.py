"""Repairs of nodes: who acted and when, what waiting and repair cost, and whether it held."""

import tomllib

import pytest
from tests.queries.conftest import FOLDER, START, START_MS, built_once, each, is_time
from tests.queries.findings import given

from goodput_queries.scope import Scope

WINDOW = Scope(START_MS, START_MS + 10_000_000)
CASES = tomllib.loads((FOLDER / "marts/health/acts.toml").read_text())["case"]


@built_once
def world(made):
    """Nodes a to e with two GPUs each at 36 a GPU-hour: 0.01 a GPU-second.

    a goes down, is drained after 300 s by ann and is back after 900 s. b goes down and comes back
    by itself, twice. c is drained by slurm with a health check's reason and is not back. d has a
    fatal error, is drained, returns, and its job fails with it again. e is drained for 5 minutes,
    tried, and drained again.
    """
    for node in "abcde":
        for index in (0, 1):
            made.listed(node, f"GPU-{node}{index}", gpu_index=index)
    made.add("rates", source="rates", price_per_gpu_h=36, cluster=None)
    made.watched(9_000)
    made.state("a", "down", 1_000, 1_300)
    made.state("a", "drained", 1_300, 1_900, user_name="ann", reason="new cable")
    made.state("b", "down", 1_000, 1_100)
    made.state("b", "down", 5_000, 5_100)
    made.state("c", "drained", 8_000, None, user_name="slurm", reason="NHC: no GPU 1")
    made.xid("d", 79, 2_000, gpu_uuid="GPU-d0", pci_bus_id="00000000:19:00.0")
    made.state("d", "drained", 2_600, 3_000, user_name="root")
    made.job("again", 4_000, 4_400, ["d"], 2, "NODE_FAIL")
    made.state("d", "down", 4_400, 4_500)
    made.state("e", "drained", 2_000, 2_300)
    made.state("e", "drained", 2_700, 3_000)


# node, which of its repairs; its columns
@each({
    "drained by a person while it was down": (
        "a", 0, {"broken_at": 1_000, "sign": "node down", "acted_at": 1_300, "acted_by": "ann",
                 "actor": "person", "end_at": 1_900, "untouched_ms": 600_000, "untouched_cost": 6.0,
                 "repair_ms": 1_200_000, "repair_cost": 12.0, "verdict": "no failure since"}),
    "back by itself, and down again": (
        "b", 0, {"acted_at": None, "actor": None, "untouched_ms": 200_000, "repair_ms": 0,
                 "verdict": "no progress"}),
    "the second time": ("b", 1, {"verdict": "no failure since"}),
    "drained by a health check, not back": (
        "c", 0, {"broken_at": None, "sign": None, "actor": "controller", "end_at": None,
                 "repair_ms": 2_000_000, "verdict": "not back"}),
    "a fatal error before, a failure after": (
        "d", 0, {"broken_at": 2_000, "sign": "Xid 79", "acted_at": 2_600, "actor": "scheduler",
                 "failures_after": 1, "verdict": "no progress"}),
    "tried for less than ten minutes": (
        "e", 0, {"acted_by": None, "actor": None, "acted_at": 2_000, "end_at": 3_000,
                 "repair_ms": 1_200_000}),
})  # fmt: skip
def test_a_repair(world, node, which, expected):
    sql = "select * from marts.repairs where node = $1 order by start_at"
    found = world.store.read(sql, [node], scope=WINDOW, is_kept=True).row(which, named=True)

    for name, value in expected.items():
        amount = pytest.approx(value) if isinstance(value, float) else value
        assert found[name] == (world.at(value) if name.endswith("_at") else amount), name


def test_all_repairs_add_up_to_the_time_down_and_drained(world):
    sums = ("sum(untouched_ms + repair_ms), sum(untouched_cost + repair_cost) from marts.repairs",
            "sum(gpu_ms), sum(cost) from marts.ledger_blamed "
            "where category in ('down', 'drained')")  # fmt: skip
    repairs, ledger = (world.store.read(f"select {sql}", scope=WINDOW).row(0) for sql in sums)

    assert repairs[0] == ledger[0] > 0
    assert float(repairs[1]) == pytest.approx(float(ledger[1]))


@each({case["name"]: (case,) for case in CASES})
def test_an_act_and_evidence_by_node(cluster, case):
    given.load(cluster, case["given"])
    yield
    rows = cluster.read(f"from marts.{case['view']} order by {case['order']}").to_dicts()
    for row, of in zip(rows, case["expected"], strict=True):
        found = {k: "" if row[k] is None else row[k] for k in of}
        found |= {k: (v - START).total_seconds() for k, v in found.items() if is_time(k) and v}
        assert found == pytest.approx(of)
