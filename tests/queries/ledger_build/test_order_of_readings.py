"""Readings are asked as they are stored: in whatever order they came, they say the same."""

import itertools
from itertools import pairwise

import pytest
from tests.queries.conftest import Evidence

from goodput_queries.ledger_build import materialise, passes

UNTIL_S = 2 * 3600 + 600
STAGES = {
    "int_sample_intervals": """select gpu_uuid, found.* exclude (series)
        from intermediate.int_sample_intervals as found
        inner join state.reading_series using (series)""",
    "int_gpu_activity": "from intermediate.int_gpu_activity",
}
GPUS = ("a#0", "a#1", "a#2")


def worked(second):
    return second % 1000 < 400


def moments(gpu):
    """Return when a GPU was read: every ten seconds, a hole of twenty minutes apart."""
    offset = GPUS.index(gpu)
    return [
        second + offset
        for second in range(0, UNTIL_S, 10)
        if not 3000 + 600 * offset <= second < 4200 + 600 * offset
    ]


def loads(*parts):
    """Return loads of the readings of all GPUs, each of a part of their moments."""
    return [[(gpu, part(moments(gpu))) for gpu in GPUS] for part in parts]


ORDERS = {
    "in_order": loads(list),
    "backwards": loads(lambda seconds: seconds[::-1]),
    "in_no_order": loads(lambda seconds: sorted(seconds, key=lambda s: s * 7919 % 10007)),
    "scrape_by_scrape": loads(*(
        lambda seconds, first=first: [s for s in seconds if first <= s < first + 1500]
        for first in range(0, UNTIL_S, 1500)
    )),
    "every_other_later": loads(lambda seconds: seconds[::2], lambda seconds: seconds[1::2]),
    "the_last_hour_first": loads(*(
        lambda seconds, hour=hour: [s for s in seconds if s // 3600 == hour] for hour in (2, 0, 1)
    )),
}  # fmt: skip


@pytest.fixture(scope="module")
def what_is_made_of(new_store):
    """Return a function: the rows of the stages of readings by order, built at the end or often.

    Each order is a cluster of one database.
    """

    def made_of(orders, *, builds):
        store = new_store()
        clusters = {name: Evidence(store, name) for name in orders}
        for cluster in clusters.values():
            cluster.node("a", len(GPUS))
        for loads in itertools.zip_longest(*orders.values(), fillvalue=[]):
            for cluster, load in zip(clusters.values(), loads, strict=True):
                for gpu, seconds in load:
                    cluster.samples(gpu, seconds, worked)
            if builds:
                store.build()
        store.build()
        found = {name: {stage: rows_of(store, stage, name) for stage in STAGES} for name in orders}
        store.close()
        return found

    return made_of


def rows_of(store, stage, cluster):
    """Return the rows of the GPUs of a cluster, without its name."""
    rows = store.read(f"{STAGES[stage]} where starts_with(gpu_uuid, $1)", [f"{cluster}/"])
    return sorted((row[0].removeprefix(f"{cluster}/"), *row[1:]) for row in rows.rows())


def the_same(found):
    """Say whether all orders gave the same rows, of each stage some."""
    first, *others = found.values()
    return all(first.values()) and all(other == first for other in others)


@pytest.mark.machine
@pytest.mark.parametrize("builds", [False, True])
def test_readings_say_the_same_in_whatever_order_they_came(what_is_made_of, builds):
    assert the_same(what_is_made_of(ORDERS, builds=builds))


@pytest.fixture(scope="module")
def whole(what_is_made_of):
    """Give the rows of all orders, built at the end."""
    return what_is_made_of(ORDERS, builds=False)


def test_it_does_not_matter_where_the_table_is_parted(monkeypatch, what_is_made_of, whole):
    monkeypatch.setattr(passes, "READINGS_OF_A_PART", 100)

    assert what_is_made_of(ORDERS, builds=False) == whole


@pytest.mark.machine
def test_it_does_not_matter_how_many_hours_a_pass_has(monkeypatch, what_is_made_of):
    # the GPUs are known before anything is read of them
    known_before = {name: [[], *loads] for name, loads in ORDERS.items()}
    whole = what_is_made_of(known_before, builds=False)
    monkeypatch.setattr(materialise, "PASS_MAX_GPU_HOURS", 1)
    monkeypatch.setattr(materialise, "LEDGER_PASS_MAX_GPU_HOURS", 1)

    assert what_is_made_of(known_before, builds=True) == whole


def test_reading_oftener_later_changes_nothing_of_the_hour_before(what_is_made_of):
    slow = [*range(0, 3600, 30), *range(3620, 4600, 30)]  # 50 s pass at the turn of the hour
    fast = range(4700, 7100, 5)
    reported = {"c": [[("a#0", slow)], [("a#0", fast)]]}

    assert what_is_made_of(reported, builds=True) == what_is_made_of(reported, builds=False)


def test_a_reading_covers_back_to_the_one_before_it_and_at_most_two_and_a_half_intervals(
    what_is_made_of,
):
    found = what_is_made_of({"c": ORDERS["in_order"]}, builds=False)
    covered = dict.fromkeys(GPUS, 0)
    for gpu, *row in found["c"]["int_gpu_activity"]:
        covered[gpu] += row[4] - row[3]

    assert covered == {
        gpu: sum(min(later - earlier, 25) for earlier, later in pairwise(moments(gpu))) * 1000
        for gpu in GPUS
    }
