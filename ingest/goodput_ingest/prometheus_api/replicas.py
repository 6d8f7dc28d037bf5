"""Deduplicates readings where two servers scraped the same exporter."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from goodput_ingest.prometheus_api.answer import Series

# labels that distinguish paired servers; `job` since an exporter may be found by two jobs of one
REPLICA_LABELS = ("prometheus_replica", "replica", "__replica__", "prometheus", "job")
GAP_INTERVALS = 1.5  # of its usual interval without a reading: the replica was away


def without_doubles(
    series: Iterable[Series], replica_labels: Sequence[str] = REPLICA_LABELS
) -> list[Series]:
    """Return the series with only one replica of each; others fill its gaps.

    Two replicas read the same GPU at moments of their own, so that a union would have readings at
    uneven distances and a twice as frequent scrape that nobody configured. The first replica by
    its labels is used, so that a repeated poll chooses alike.
    """
    alike: dict[frozenset[tuple[str, str]], list[Series]] = {}
    for one in _whole(series):
        alike.setdefault(_identity(one, replica_labels), []).append(one)
    found: list[Series] = []
    for group in alike.values():
        if len(group) == 1:
            found += group
            continue
        group.sort(key=lambda one: [one.labels.get(label, "") for label in replica_labels])
        merged = group[0]
        for other in group[1:]:
            merged = _filled(merged, other)
        found.append(merged)
    return found


def _whole(series: Iterable[Series]) -> list[Series]:
    """Return series that came in parts, one after the other, as one each."""
    parts: dict[frozenset[tuple[str, str]], list[Series]] = {}
    for one in series:
        parts.setdefault(frozenset(one.labels.items()), []).append(one)
    found: list[Series] = []
    for group in parts.values():
        if len(group) == 1:
            found += group
            continue
        times_ms, first = np.unique(
            np.concatenate([one.times_ms for one in group]), return_index=True
        )
        values = np.concatenate([one.values for one in group])[first]
        found.append(Series(group[0].labels, times_ms, values))
    return found


def _identity(one: Series, replica_labels: Sequence[str]) -> frozenset[tuple[str, str]]:
    if not any(label in one.labels for label in replica_labels):
        return frozenset(one.labels.items())
    return frozenset(item for item in one.labels.items() if item[0] not in replica_labels)


def _filled(first: Series, other: Series) -> Series:
    """Return `first` with those points of `other` that lie inside its gaps or beyond its ends."""
    if len(first.times_ms) == 0:
        return Series(first.labels, other.times_ms, other.values)
    if len(other.times_ms) == 0:
        return first
    interval_ms = _interval_ms(first if len(first.times_ms) > 1 else other)
    at = np.searchsorted(first.times_ms, other.times_ms)
    before = first.times_ms[np.maximum(at - 1, 0)]
    after = first.times_ms[np.minimum(at, len(first.times_ms) - 1)]
    is_inside = (at > 0) & (at < len(first.times_ms))
    is_in_gap = ~is_inside | (after - before > GAP_INTERVALS * interval_ms)
    is_apart = np.minimum(abs(other.times_ms - before), abs(after - other.times_ms)) > (
        interval_ms / 2
    )
    keep = is_in_gap & is_apart
    times_ms = np.concatenate([first.times_ms, other.times_ms[keep]])
    values = np.concatenate([first.values, other.values[keep]])
    order = np.argsort(times_ms, kind="stable")
    return Series(first.labels, times_ms[order], values[order])


def _interval_ms(one: Series) -> float:
    steps: NDArray[np.int64] = np.diff(one.times_ms)
    return float(np.median(steps)) if len(steps) else np.inf
