"""The GPUs and hours of a build are divided into tasks that keep its workers busy."""

from itertools import product

from goodput_queries.ledger_build.parts.plan import parts_of

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


def test_tasks_are_a_multiple_of_the_workers():
    assert len(parts_of({*range(12)}, EIGHT, most_gpu_hours=24_000, workers=2)) == 4


def test_few_gpus_still_make_a_task_for_each_worker():
    assert len(parts_of({0}, EIGHT, most_gpu_hours=24_000, workers=4)) == 4
