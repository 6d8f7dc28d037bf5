"""The planner of tasks: which GPUs, or nodes, and which hours make a task."""

from collections.abc import Mapping

from goodput_queries.ledger_build.dirty_hours import Hours, ranges

Part = tuple[tuple[int, ...], int, int]  # buckets, the first hour, the one after the last


def parts_of(
    hours: Hours, gpus: Mapping[int, int], *, most_gpu_hours: int, workers: int
) -> list[Part]:
    """Return parts of some hours of all buckets, each of at most so many GPU-hours, or one hour.

    Buckets are divided before hours: a part reads a little beyond its hours on both sides. Their
    groups are as many as workers, or a multiple: else some workers wait while the last parts are
    computed.

    gpus: by bucket, how many there are. workers: that compute parts at once.
    """
    found: list[Part] = []
    every = sum(gpus.values())
    for first, last in ranges(hours, len(hours)):
        rounds = -(-every * (last - first) // (most_gpu_hours * workers))
        for group in _groups(gpus, min(max(1, rounds) * workers, len(gpus))):
            here = max(1, sum(gpus[bucket] for bucket in group))
            most = max(1, most_gpu_hours // here)
            found += [(group, *part) for part in ranges(range(first, last), most)]
    return found


def _groups(gpus: Mapping[int, int], count: int) -> list[tuple[int, ...]]:
    """Return the buckets in so many groups of about as many GPUs: the largest go first."""
    groups: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for bucket in sorted(gpus, key=lambda one: (-gpus[one], one)):
        least = sizes.index(min(sizes))
        groups[least].append(bucket)
        sizes[least] += gpus[bucket]
    return [tuple(sorted(group)) for group in groups if group]
