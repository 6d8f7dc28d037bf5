"""How a build is divided: GPUs and hours into tasks that keep workers busy, readings into parts."""

from itertools import product

import pytest

from goodput_queries.ledger_build.distributed.plan import parts_of
from goodput_queries.ledger_build.passes import READINGS_OF_A_PART, borders_of_parts

SIZE = READINGS_OF_A_PART
EIGHT = dict.fromkeys(range(8), 625)  # GPUs by bucket


def test_every_bucket_and_hour_is_in_one_task():
    parts = parts_of({*range(10, 34)}, EIGHT, most_gpu_hours=24_000, workers=3)

    found = [
        pair for buckets, first, last in parts for pair in product(buckets, range(first, last))
    ]
    assert sorted(found) == sorted(product(range(8), range(10, 34)))


def test_a_task_has_at_most_so_many_gpu_hours():
    parts = parts_of({*range(24)}, EIGHT, most_gpu_hours=24_000, workers=2)

    assert max(625 * len(buckets) * (last - first) for buckets, first, last in parts) <= 24_000


@pytest.mark.parametrize(
    ("hours", "workers"), [(12, 2), (1, 4)], ids=["a multiple of the workers", "few GPUs"]
)
def test_each_worker_has_as_many_tasks_as_the_others(hours, workers):
    assert len(parts_of({*range(hours)}, EIGHT, most_gpu_hours=24_000, workers=workers)) == 4


@pytest.mark.parametrize(
    ("first", "last", "most", "borders"),
    [
        (7, 7 + 2 * SIZE - 1, 8, [7, 7 + 2 * SIZE - 1]),
        (0, 0, 8, [0, 0]),
        (7, 7 + 3 * SIZE, 8, [7, 7 + SIZE, 7 + 2 * SIZE, 7 + 3 * SIZE]),
        (0, 100 * SIZE, 2, [0, 50 * SIZE, 100 * SIZE]),
    ],
    ids=["few are one part", "none", "many are parts of equal size", "no more than asked for"],
)
def test_borders_of_parts(first, last, most, borders):
    assert borders_of_parts(first, last, most=most) == borders
