"""How a build of a lake is cut into tasks."""

from itertools import product

from tests.tables import each

from goodput_lake.tasks.plan import parts_of

EIGHT = dict.fromkeys(range(8), 625)  # GPUs by bucket


def test_every_bucket_and_hour_is_in_one_task_which_has_at_most_so_many_gpu_hours():
    parts = parts_of({*range(10, 34)}, EIGHT, most_gpu_hours=24_000, workers=3)

    found = [pair for buckets, *span in parts for pair in product(buckets, range(*span))]
    assert sorted(found) == sorted(product(range(8), range(10, 34)))
    assert max(625 * len(buckets) * (last - first) for buckets, first, last in parts) <= 24_000


@each({"a multiple of the workers": (12, 2), "few GPUs": (1, 4)})
def test_each_worker_has_as_many_tasks_as_the_others(hours, workers):
    assert len(parts_of({*range(hours)}, EIGHT, most_gpu_hours=24_000, workers=workers)) == 4
