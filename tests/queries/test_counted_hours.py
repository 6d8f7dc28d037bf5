"""Settled hours are counted once: counters add up to the capacity and never fall."""

from collections import Counter
from datetime import datetime

from tests.queries.conftest import Evidence, built_file, copy_of

from goodput_queries import counted_hours
from goodput_queries.counted_hours import HOUR_MS, OTHER, count_settled_hours, revisions
from goodput_queries.evidence.retention import Retention, drop_old

HOUR_S = 3_600
SETTLE_MS = 6 * HOUR_MS
NOW = datetime(2027, 1, 18)  # noqa: DTZ001 -- naive UTC; after the end of the evidence
# hours of their jobs; the last name is longer than a label
TEAMS = {"large": (0, 8), "middle": (8, 14), "small": (14, 18), "x" * 500: (18, 20)}


@built_file
def built(evidence):
    """Two GPUs over 30 hours, with a job of each team, and a job without any GPU elsewhere."""
    evidence.node("a", 2, partitions=("batch",), watched=30 * HOUR_S)
    for number, (team, (start, end)) in enumerate(TEAMS.items()):
        evidence.job(str(number), start * HOUR_S, end * HOUR_S, ["a"], 1, account=team,
                     partition="batch")  # fmt: skip
    evidence.samples("a#0", evidence.every(0, 30 * HOUR_S, 600), lambda _: True)
    elsewhere = Evidence(evidence.store, "default")
    elsewhere.job("9", 0, HOUR_S, ["gone"], 0)


world = copy_of("built")


def count(world, *, settle_ms=SETTLE_MS, label_values=20):
    return count_settled_hours(world.store, settle_ms=settle_ms, label_values=label_values)


def counters(world, label_values=20):
    """Return what /metrics shows, by labels."""
    rows = counted_hours.counted(world.store, label_values).rows()
    return {tuple(labels): gpu_ms for *labels, gpu_ms in rows}


def by_team(world, label_values=20):
    sums = Counter()
    for (_, _, team, _, _), gpu_ms in counters(world, label_values).items():
        sums[team] += gpu_ms
    return sums


def falls(before, after):
    return {labels for labels, gpu_ms in before.items() if after.get(labels, gpu_ms) < gpu_ms}


def test_counted_time_adds_up_to_the_capacity_of_settled_hours(world):
    hours = count(world)

    until = world.read("from state.counted_until").row(0, named=True)
    as_of_ms = world.read("select as_of_ms from state.built where cluster = 'c'")
    assert until["cluster"] == "c"
    assert until["until_ms"] == (as_of_ms.item() - SETTLE_MS) // HOUR_MS * HOUR_MS
    assert {cluster for cluster, *_ in counters(world)} == {"c"}  # the other one has no GPU
    assert sum(counters(world).values()) == 2 * hours * HOUR_MS
    assert by_team(world)["large"] == 8 * HOUR_MS
    assert max(map(len, by_team(world))) == counted_hours.VALUE_MAX_CHARS, "long names are cut"
    assert set(revisions(world.store)["gpu_ms"]) == {0}
    before = counters(world)

    assert count(world) == 0, "an hour is counted once"
    assert counters(world) == before
    assert count(world, settle_ms=HOUR_MS) == 5
    assert falls(before, counters(world)) == set()
    assert sum(counters(world).values()) - sum(before.values()) == 2 * 5 * HOUR_MS


def test_late_evidence_and_new_teams_lower_no_counter(world):
    """The ledger moves time of a counted hour; a team that becomes large gets a series."""
    count(world, label_values=2)
    before = counters(world, 2)
    late = [{"event": "step", "step": k, "t": 600.0 * k, "dur_s": 600.0} for k in range(1, 12)]

    world.events("0", late)
    world.job("new", 31 * HOUR_S, 55 * HOUR_S, ["a"], 2, account="new", partition="batch")
    world.watched(61 * HOUR_S)
    world.build()
    count(world, label_values=2)

    after = counters(world, 2)
    moved = {row["category"]: row["gpu_ms"] for row in revisions(world.store).to_dicts()}
    assert falls(before, after) == set()
    assert by_team(world, 2)["new"] == 2 * 24 * HOUR_MS
    assert len(set(by_team(world, 2)) - {"", OTHER}) == 2
    assert min(moved.values()) < 0 < max(moved.values())
    assert sum(moved.values()) == 0


def test_a_full_build_after_readings_were_dropped_changes_no_counter(world):
    count(world, settle_ms=20 * HOUR_MS)
    before = counters(world)

    drop_old(world.store, Retention(samples_days=1), is_confirmed=True, now=NOW)
    world.store.build(is_full=True)

    assert world.read("select count(*) from state.ledger_archive").item() > 0
    assert counters(world) == before
    assert count(world) > 0
    assert falls(before, counters(world)) == set()
    assert set(revisions(world.store)["gpu_ms"]) == {0}


def test_teams_beyond_the_limit_are_counted_together(world):
    hours = count(world, label_values=2)

    assert set(by_team(world)) == {"", "large", "middle", OTHER}
    assert by_team(world)[OTHER] == (4 + 2) * HOUR_MS
    assert sum(counters(world).values()) == 2 * hours * HOUR_MS
    folded = counted_hours.folded(world.store, 2).select("label", "folded")
    assert dict(folded.rows()) == {"team": 2, "partition": 0, "gpu_model": 0}
