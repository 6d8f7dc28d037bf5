"""Readings are asked as they are stored: in whatever order they came, they say the same."""

import shutil
from itertools import pairwise

import pytest
from tests.queries.conftest import Evidence

from goodput_queries.ledger_build import materialise, passes
from goodput_queries.storage.store import LocalStore

UNTIL_S = 2 * 3600 + 600
STAGES = ("int_sample_intervals", "int_gpu_activity")
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


def in_order():
    return [[(gpu, moments(gpu)) for gpu in GPUS]]


def backwards():
    return [[(gpu, moments(gpu)[::-1]) for gpu in GPUS]]


def in_no_order():
    return [[(gpu, sorted(moments(gpu), key=lambda s: s * 7919 % 10007)) for gpu in GPUS]]


def scrape_by_scrape():
    return [
        [(gpu, [s for s in moments(gpu) if first <= s < first + 1500]) for gpu in GPUS]
        for first in range(0, UNTIL_S, 1500)
    ]


def every_other_later():
    return [[(gpu, moments(gpu)[part::2]) for gpu in GPUS] for part in range(2)]


def the_last_hour_first():
    return [
        [(gpu, [s for s in moments(gpu) if s // 3600 == hour]) for gpu in GPUS]
        for hour in (2, 0, 1)
    ]


@pytest.fixture(scope="module")
def what_is_made_of(empty_database, tmp_path_factory):
    """Return a function: the rows of the stages of readings, by builds at the end or every load."""

    def made_of(loads, *, builds):
        path = tmp_path_factory.mktemp("readings") / "fleet.duckdb"
        shutil.copyfile(empty_database, path)
        evidence = Evidence(LocalStore(path))
        evidence.node("a", len(GPUS))
        for load in loads:
            for gpu, seconds in load:
                evidence.samples(gpu, seconds, worked)
            if builds:
                evidence.store.build()
        evidence.store.build()
        rows = {
            name: sorted(evidence.store.read(f"from intermediate.{name}").rows()) for name in STAGES
        }
        evidence.store.close()
        return rows

    return made_of


@pytest.fixture(scope="module")
def whole(what_is_made_of):
    """Return what is made of all readings, in order and at once."""
    return what_is_made_of(in_order(), builds=False)


@pytest.mark.parametrize("builds", [False, True])
@pytest.mark.parametrize(
    "reported",
    [backwards, in_no_order, scrape_by_scrape, every_other_later, the_last_hour_first],
    ids=lambda reported: reported.__name__,
)
def test_readings_say_the_same_in_whatever_order_they_came(
    what_is_made_of, whole, reported, builds
):
    assert what_is_made_of(reported(), builds=builds) == whole


@pytest.mark.parametrize("reported", [in_order, every_other_later, in_no_order])
def test_it_does_not_matter_where_the_table_is_parted(
    monkeypatch, what_is_made_of, whole, reported
):
    monkeypatch.setattr(passes, "READINGS_OF_A_PART", 100)

    assert what_is_made_of(reported(), builds=False) == whole


@pytest.mark.parametrize("reported", [in_order, every_other_later, the_last_hour_first])
def test_it_does_not_matter_how_many_hours_a_pass_has(
    monkeypatch, what_is_made_of, whole, reported
):
    known_before = [[], *reported()]  # the GPUs are known before anything is read of them

    monkeypatch.setattr(materialise, "PASS_MAX_GPU_HOURS", 1)
    monkeypatch.setattr(materialise, "LEDGER_PASS_MAX_GPU_HOURS", 1)

    assert what_is_made_of(known_before, builds=True) == whole


def test_reading_oftener_later_changes_nothing_of_the_hour_before(what_is_made_of):
    slow = [*range(0, 3600, 30), *range(3620, 4600, 30)]  # 50 s pass at the turn of the hour
    fast = range(4700, 7100, 5)
    reported = [[("a#0", slow)], [("a#0", fast)]]

    assert what_is_made_of(reported, builds=True) == what_is_made_of(reported, builds=False)


def test_a_reading_covers_back_to_the_one_before_it_and_at_most_two_and_a_half_intervals(whole):
    covered = dict.fromkeys((f"c/{gpu}" for gpu in GPUS), 0)
    for row in whole["int_gpu_activity"]:
        covered[row[0]] += row[5] - row[4]

    assert covered == {
        f"c/{gpu}": sum(min(later - earlier, 25) for earlier, later in pairwise(moments(gpu)))
        * 1000
        for gpu in GPUS
    }
