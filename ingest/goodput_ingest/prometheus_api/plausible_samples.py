"""Samples of series whose times are plausible: where what is derived spans from sample to sample.

An implausible timestamp would extend a state, or the time of the whole answer, to it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.bulk import epoch_ms
from goodput_ingest.source import Reject
from goodput_queries.evidence import plausible

DAY_MS = 86_400_000


def plausible_samples(
    series: Sequence[Series], earliest: datetime, now: datetime, *, is_recorded: bool = False
) -> tuple[list[Series], list[Reject]]:
    """Return the series without samples of implausible time, and what was rejected of each.

    is_recorded: samples apart from the bulk of the file are rejected too.
    """
    first_ms, last_ms = epoch_ms(earliest), epoch_ms(now + plausible.AHEAD_MAX)
    bounds = [
        (plausible.before("the time of a sample", earliest), first_ms, np.iinfo(np.int64).max),
        (plausible.ahead("the time of a sample"), np.iinfo(np.int64).min, last_ms),
    ]
    if is_recorded and (bulk := _bulk(series, first_ms, last_ms)) is not None:
        bounds.append((plausible.far("the time of a sample"), *bulk))
    kept: list[Series] = []
    rejects: list[Reject] = []
    for one in series:
        left = one
        for reason, low, high in bounds:
            is_good = (left.times_ms >= low) & (left.times_ms <= high)
            if not is_good.all():
                bad = int((~is_good).sum())
                labels = json_lines.printable(json.dumps(dict(one.labels)), TEXT_MAX_CHARS)
                rejects.append(Reject(None, reason, f"{bad} samples of {labels}"))
                left = replace(left, times_ms=left.times_ms[is_good], values=left.values[is_good])
        kept.append(left)
    return kept, rejects


def _bulk(series: Sequence[Series], first_ms: int, last_ms: int) -> tuple[int, int] | None:
    """Return between which moments the bulk of the plausible samples lies."""
    days: Counter[int] = Counter()
    for one in series:
        times = one.times_ms[(one.times_ms >= first_ms) & (one.times_ms <= last_ms)]
        found, counts = np.unique(times // DAY_MS, return_counts=True)
        days.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
    bulk = plausible.bulk_of(days)
    return None if bulk is None else (bulk[0] * DAY_MS, (bulk[1] + 1) * DAY_MS - 1)
