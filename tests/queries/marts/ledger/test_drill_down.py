"""One sum of GPU time is one figure, and what it leads to adds up to it, in the demo."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.fleets.generate import beside_recorded
from tests.queries.conftest import each, store_of

from goodput_queries.catalog import models
from goodput_queries.check import check
from goodput_queries.ledger import ledger
from goodput_queries.scope import EVERYTHING, Scope

CUT_MAX_MS = 2 * 3_600_000
RUNS_MAX = 8  # each is a query
ACCOUNTED = "sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost"


@pytest.fixture(
    scope="module",
    params=["recorded session", pytest.param("with a fleet", marks=pytest.mark.machine)],
)
def session(request, recorded_demo, filled, module_store, tmp_path_factory):
    """Give the demo: the recorded session alone, and with twelve hours of a made-up fleet."""
    if request.param == "recorded session":
        return module_store(copy_of=recorded_demo)
    return module_store(copy_of=beside_recorded(filled, recorded_demo, tmp_path_factory))


@pytest.fixture(scope="module")
def windows(session):
    """Give all time and a window that cuts hours, runs and gaps."""
    sql = "select epoch_ms(min(first_at)), epoch_ms(max(as_of_at)) from marts.clusters"
    first, last = session.read(sql).row(0)
    third = min((last - first) // 3, CUT_MAX_MS)
    return EVERYTHING, Scope(from_ms=last - 2 * third + 137, to_ms=last - third - 211)


IDLE = "select sum(idle_ms), sum(held_ms) from marts.executing_idle"


# what it shows: two selects that give the same rows; keys, whole numbers and costs
@each({
    "the intervals of a category add up to the ledger": (
        "select category, gpu_ms from marts.ledger_by_category where gpu_ms > 0 order by 1",
        "select category, sum(gpu_ms)::bigint from marts.category_intervals group by 1 order by 1"),
    "the parts of a gap add up to the gap": (
        "select gap_id, gpu_ms, cost from marts.idle_gaps order by 1",
        f"select gap_id, {ACCOUNTED} from marts.idle_gap_parts group by 1 order by 1"),
    "the GPUs of a run add up to its ledger": (
        "select run_key, held_ms from marts.runs order by 1",
        "select run_key, sum(gpu_ms)::bigint from marts.run_gpus group by 1 order by 1"),
    "executing idle is one figure": (IDLE, f"{IDLE}_by_team"),
})  # fmt: skip
def test_two_figures_are_one(session, windows, first, second):
    for window in windows:
        expected, found = (session.read(sql, scope=window, is_kept=True) for sql in (first, second))
        assert expected.height > 0
        assert [row[:2] for row in found.rows()] == [row[:2] for row in expected.rows()]
        first_of, second_of = ([float(v or 0) for v in rows[:, -1]] for rows in (expected, found))
        assert second_of == pytest.approx(first_of, abs=1e-5)


# what it shows: a select without rows
@each({
    "intervals of one GPU and category do not touch": """from marts.category_intervals as a
        inner join marts.category_intervals as b using (gpu_uuid, gpu_instance, category, blame)
        where a.end_at = b.start_at and a.run_key is not distinct from b.run_key""",
    "a gap ends at the window": """from marts.idle_gaps
        where epoch_ms(start_at) < getvariable('scope_from_ms')::bigint
            or epoch_ms(end_at) > getvariable('scope_to_ms')::bigint""",
    "executing idle is a part of allocated time": f"""from ({IDLE}) as idle(idle_ms, run_ms),
            marts.goodput_summary as whole
        where not (idle.idle_ms <= run_ms and run_ms <= whole.held_ms and whole.held_ms <= (
            select sum(gpu_ms) from marts.ledger_by_category where kind <> 'free'
        ))""",
})  # fmt: skip
def test_what_cannot_be_is_not(session, windows, sql):
    for window in windows:
        assert session.read(sql, scope=window, is_kept=True).is_empty()


def test_the_categories_of_a_gpu_of_a_run_add_up_to_it(session, windows):
    for window in windows:
        rows = session.read("select * from marts.run_gpus", scope=window, is_kept=True)
        columns = [n for n in rows.columns if n.endswith("_ms") and n != "gpu_ms"]
        assert (rows.select(pl.sum_horizontal(columns)).to_series() == rows["gpu_ms"]).all()


def test_every_loss_leads_to_intervals_that_add_up_to_it(session, windows):
    """Of each run, and of some with their run as the filter."""
    keys = ("cluster", "run_key", "category", "blame")
    of_keys = f"select {', '.join(keys)}, {ACCOUNTED} from marts.category_intervals"
    sql = f"{of_keys} group by all order by all"
    for window in windows:
        losses = session.read("select * from marts.loss_causes", scope=window)
        assert losses.height > 5
        every = session.read(sql, scope=window)
        found = every.rows_by_key(keys, unique=True)
        for loss in losses.iter_rows(named=True):
            gpu_ms, cost = found[tuple(loss[key] for key in keys)]
            assert gpu_ms == loss["gpu_ms"], loss
            assert cost == pytest.approx(loss["cost"], abs=1e-5), loss
        runs = losses.drop_nulls("run_key").group_by("cluster", "run_key").len()
        for cluster, run, _ in runs.sort("len", "run_key").tail(RUNS_MAX).rows():
            asked = replace(window, cluster=cluster, run=run)
            of_run = session.read(sql, scope=asked).drop("cost")
            assert of_run.equals(every.filter(cluster=cluster, run_key=run).drop("cost"))


def test_what_a_team_leads_to_adds_up_to_the_team(session, windows):
    """To the millisecond; costs are sums in any order."""
    of_teams = (f"select cluster, team, category, {ACCOUNTED} from marts.category_intervals "
                "where team is not null group by all having gpu_ms > 0 order by all")  # fmt: skip
    whole = "select category, gpu_ms, cost from marts.ledger_by_category where gpu_ms > 0"
    for window in windows:
        for (cluster, team), cells in session.read(of_teams, scope=window, is_kept=True).group_by(
            "cluster", "team"
        ):
            scope = replace(window, cluster=cluster, team=team)
            ledger = session.read(f"{whole} order by 1", scope=scope, is_kept=True)
            of_team = cells.sort("category").select(ledger.columns)
            assert of_team.drop("cost").rows() == ledger.drop("cost").rows()
            assert of_team["cost"].to_list() == pytest.approx(ledger["cost"].to_list(), abs=1e-5)


def test_a_part_of_a_gap_lies_within_its_category(cluster):
    """A node is drained in the middle of a gap: the drain does not begin with the gap."""
    cluster.node("a", 1, watched=1000)
    cluster.state("a", "drained", 600, 1000)
    cluster.samples("a#0", cluster.every(-10, 1000), lambda s: s <= 0)
    yield
    sql = "select category, gpu_ms, start_at, end_at, is_main from marts.idle_gap_parts order by 3"
    parts = cluster.read(sql)

    assert parts.rows() == [
        ("idle_no_demand", 600_000, cluster.at(0), cluster.at(600), True),
        ("drained", 400_000, cluster.at(600), cluster.at(1000), False),
    ]
    whole = cluster.read("select category, gpu_ms, category_gpu_ms from marts.idle_gaps")
    assert whole.rows() == [("idle_no_demand", 1_000_000, 600_000)]


LOSSES = "marts.losses inner join reference.gpu_second_categories using (category)"
SUMMARY = "select wasted_ms, wasted_cost, held_ms, capacity_ms from marts.goodput_summary"


def one(session, sql, scope):
    """Return a row without nulls."""
    return [float(value or 0) for value in session.read(sql, scope=scope, is_kept=True).row(0)]


def of_clusters(session, window):
    """Return the window, and the window of each cluster."""
    names = session.read("select cluster from marts.clusters order by 1")["cluster"]
    return [window, *(replace(window, cluster=name) for name in names)]


def test_waste_is_one_figure(session, windows):
    """What is not available is listed with the losses, and is no waste."""
    for window in windows:
        for scope in of_clusters(session, window):
            expected = one(session, SUMMARY, scope)[:2]
            for source in (
                "marts.ledger_by_category where kind = 'badput'", "marts.waste_by_team",
                f"{LOSSES} where kind = 'badput'",
                "(select wasted_ms as gpu_ms, wasted_cost as cost from marts.nodes)",
            ):  # fmt: skip
                found = one(session, f"select sum(gpu_ms)::bigint, sum(cost) from {source}", scope)
                assert found == pytest.approx(expected, abs=1e-5), source


def test_clusters_add_up(session, windows):
    for window in windows:
        every, *each = of_clusters(session, window)
        for sql in (SUMMARY, IDLE):
            sums = map(sum, zip(*(one(session, sql, scope) for scope in each), strict=True))
            assert [*sums] == pytest.approx(one(session, sql, every), abs=1e-5)


def test_data_quality_has_the_allocated_time_of_the_ledger(session, windows):
    """In the scheduler's units: an instance of a GPU is one, and what is unplaced counts."""
    parts = """select gpu_uuid, gpu_instance,
            any_value(share_of) / any_value(share_hi - share_lo) as units
        from intermediate.int_gpu_units group by all"""
    placed = f"""select sum(gpu_ms * units) / 1000 from marts.ledger_scoped
        inner join ({parts}) as parts using (gpu_uuid, gpu_instance)
        where job_run_key is not null"""
    unplaced = "select sum(gpu_ms) / 1000 from marts.unplaced"
    of_scheduler = "select held_gpu_s from marts.scheduler_reconciliation"
    for window in windows:
        for scope in of_clusters(session, window)[1:]:
            held_s = sum(float(one(session, sql, scope)[0]) for sql in (placed, unplaced))
            assert held_s == pytest.approx(float(one(session, of_scheduler, scope)[0]), abs=1)


ROOT = Path(__file__).parents[4]
recorded = store_of("recorded_demo")


def test_the_ledger_of_main_is_the_reference_ledger(recorded):
    found = dict(ledger(recorded, scope=Scope(run="lab/main")).select("category", "gpu_s").rows())

    assert sum(found.values()) == pytest.approx(560.000, abs=1e-9)
    assert check(recorded)["violations"].sum() == 0
    reference = {
        "checkpoint_save": 34.79, "restore": 8.25, "startup": 111.6, "lost_work": 58.7,
        "fault_stall": 19.6, "teardown": 15.6,
        "data_stall": 24.05,  # waits of 5 % of a step (6 ms here) and more
    }  # fmt: skip
    near = {k: pytest.approx(v, rel=0.01) for k, v in reference.items()}
    assert {k: found[k] for k in reference} == near
    assert 16.0 <= found["idle_held"] <= 17.7
    assert found["idle_held"] + found["busy_unclassified"] == pytest.approx(17.70, abs=0.1)
    assert found["straggler_wait"] == pytest.approx(13.2, abs=0.6)
    assert "unknown" not in found
    assert found.keys() & {"productive", "exposed_comm"} == set()  # NCCL durations separate nothing


def test_the_idle_gap_is_seen_on_each_gpu_and_none_inside_undisturbed_steps(recorded):
    sql = """select gpu_index, gap_s from marts.idle_gaps
        where run_id = 'main' and category = 'idle_held' order by gpu_index"""
    gaps = recorded.read(sql)

    assert gaps["gpu_index"].to_list() == [0, 1, 2, 3]
    assert all(3.85 <= gap <= 4.05 for gap in gaps["gap_s"])
    sql = """with steps as (
            select min(start_at) as start_at, max(end_at) as end_at from marts.train_steps
            where run_key = 'lab/main' and attempt = 0 and step between 2 and 118
        )
        select gaps.* from marts.idle_gaps as gaps, steps
        where gaps.start_at < steps.end_at and gaps.end_at > steps.start_at"""
    assert recorded.read(sql).is_empty()


def test_stragglers_are_named_where_they_were_injected(recorded):
    truth = map(json.loads, (ROOT / "tests/truth/h200x4-a.jsonl").read_text().splitlines())
    slow = [line for line in truth if line["kind"] == "slow_step"]
    injected = {(line["attempt"], line["step"]): line["rank"] for line in slow}
    sql = "select attempt, step, straggler_rank from marts.train_steps where run_key = 'lab/main'"
    named = {(a, s): rank for a, s, rank in recorded.read(sql).rows() if rank is not None}

    assert len(injected) == 120
    assert sum(named.get(key) == rank for key, rank in injected.items()) >= 118
    assert sum(key not in injected for key in named) <= 5

    # the wait that one imposes is counted once
    found = recorded.read("select attempt, rank, imposed_wait_gpu_s from marts.stragglers "
                          "where run_id = 'main' order by all").rows()  # fmt: skip

    assert [row[:2] for row in found] == [(0, 1), (0, 3), (1, 3)]
    first, *others = [wait for _, _, wait in found]
    assert 8.9 <= first <= 9.6
    assert all(3.2 <= wait <= 3.9 for wait in others)


@pytest.mark.machine
def test_every_mart_of_all_teams_answers(recorded):
    """Of those that a reader of one team may ask, test_rows_of_a_team reads all rows."""
    for mart in models.of_layer("marts").values():
        if mart.access != "team":
            recorded.read(f"select * from {mart.qualified_name} limit 1", is_kept=True)
