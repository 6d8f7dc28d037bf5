"""The fix list gives back what the ledger gains when it is computed again without the losses."""

from collections import Counter

from tests.queries.conftest import Cluster, build_together, each
from tests.queries.findings import given
from tests.queries.findings.conftest import rows_together
from tests.queries.findings.lossy_runs import LOSSES, load, make

USEFUL = "('productive', 'step_unsplit', 'exposed_comm')"
FIXES = {"gaps": "remove_periodic_gaps", "pauses": "feed_input", "crashes": "fix_job",
         "limit": "save_on_signal", "input": "feed_input"}  # fmt: skip
SLOW = {"throttled": "cool_gpu", "late": "look_at_rank"}
SEEDS = range(12)
HOUR = 3600


def test_the_fix_list_is_the_difference_to_the_runs_without_their_losses(store):
    """To the millisecond, for each fix and in total; a loss inside a loss counts once."""
    runs = {f"c{seed}": make(seed) for seed in SEEDS}
    clusters = {name: Cluster(store, name) for name in runs}
    for name, run in runs.items():
        load(clusters[name], run, "real")
        load(clusters[name], run.without(LOSSES), "ideal")
    build_together(store, "every", clusters.values())

    expected = Counter[tuple[str, str]]()
    for name, run in runs.items():
        for loss, ms in run.gives_back().items():
            expected[name, FIXES.get(loss) or SLOW[run.slow]] += ms
            # alone it may give back more
            assert ms <= run.wasted_gpu_ms() - run.without((loss,)).wasted_gpu_ms()
    fixes = store.read("select cluster, fix, back_ms from marts.fixes where back_ms > 0").rows()
    assert {(name, fix): ms for name, fix, ms in fixes} == expected
    sql = f"""select sum(case run_id when 'real' then gpu_ms else -gpu_ms end)::bigint
        from marts.ledger_blamed_by_node
        where run_id is not null and category not in {USEFUL}"""
    recomputed = store.read(sql).item()
    assert sum(ms for *_, ms in fixes) == recomputed


def test_free_time_that_is_lost_in_two_ways_comes_back_once(cluster):
    """A node that is down while jobs wait is repaired first; only what is free then could run."""
    for node in "abc":
        cluster.node(node, 2, partitions=("gpu",))
    cluster.watched(2 * HOUR)
    cluster.state("a", "down", 600.001, 5000)
    cluster.state("b", "drained", 4000, 6000.002)
    cluster.job("1", 1000, 3000, ["b"], 2, partition="gpu")
    cluster.job("2", None, 5500.003, [], 2, state="CANCELLED", partition="gpu", submit=2000)
    yield
    fixes = {row["fix"]: row["back_ms"] for row in rows_together(cluster, "marts.fixes")}
    waited = (3500.003 - 1000) + (3500.003 - (5000 - 2000)) + 3500.003  # b, a, c
    waited -= 5500.003 - 4000  # b is drained
    assert {fix: ms for fix, ms in fixes.items() if ms} == {
        "repair_node": 2 * 4399_999,
        "return_node": 2 * 2000_002,
        "fit_queue": 2 * round(waited * 1000),
    }


WEEK_H = 168
NODE = [{"node": "a", "gpus": 4}, {"watched": 8 * HOUR}]


def idle(end):
    """Return the node and a job whose GPUs are idle to its end."""
    return [*NODE, {"job": "1", "end": end}, {"readings": "a/0-3", "to": end, "use": "idle"}]


def failing(*ends):
    """Return a node whose jobs end with it, an hour and a half of each without a save."""
    world = [*NODE]
    for number, end in enumerate(ends, 1):
        job = {"job": str(number), "start": end - 5400, "end": end, "state": "NODE_FAIL"}
        steps = {"steps": str(number), "start": end - 5400, "to": end - 60}
        down = {"state": "down", "node": "a", "start": end, "end": end + 60}
        world += [job, steps, down]
    return world


# what it shows: what happens in eight hours, the fix, whether its GPU time is put on a week
@each({
    "one incident": (failing(7200), "drain_node", False),
    "two incidents": (failing(7200, 14400), "drain_node", True),
    "idle GPUs that are still held": (idle(8 * HOUR), "release_gpus", True),
    "idle GPUs that one job held": (idle(HOUR), "release_gpus", False),
})  # fmt: skip
def test_what_happened_once_is_not_put_on_a_week(cluster, world, fix, is_of_a_week):
    given.load(cluster, world)
    yield
    (found,) = [row for row in rows_together(cluster, "marts.fixes") if row["fix"] == fix]
    assert found["back_ms"] > 0
    week_ms = found["back_ms"] * WEEK_H // 8 if is_of_a_week else None
    assert (found["back_week_ms"], found["is_recurrent"]) == (week_ms, is_of_a_week)
