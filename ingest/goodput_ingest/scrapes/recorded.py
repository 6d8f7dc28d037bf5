"""Files of scrapes: whose they are, and when each was taken.

A file holds one scrape (`curl gpu-a01:9400/metrics`) or many. When a scrape was taken is, in this
order: the time that its lines carry; the line `# scraped_at` before it, which our own scraper
writes; what the person who reads it in says (--observed-at); a moment in the file's name, as
`gpu-a01_20261120T120000Z.prom`. The time the file was changed is no evidence.
"""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from goodput_ingest.formats.prometheus_text.exposition import Exposition
from goodput_ingest.formats.prometheus_text.series import MARK
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

NAMED_MOMENT: Final = re.compile(r"(?<!\d)(\d{8}T\d{6}Z)(?!\w)")
SAMPLE: Final = re.compile(
    r"\s*(?:([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\}|\s)|\{\"([^\"\\]+)\".*\})\s*"
    r"[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|Inf)(?:\s.*)?"
)


def has_metric(head: bytes, is_wanted: Callable[[str], object]) -> bool:
    """Say whether at least half of the first lines are samples, some of a wanted metric."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.strip()]
    samples = [line for line in lines if not line.lstrip().startswith("#")]
    found = [match[1] or match[2] for line in samples if (match := SAMPLE.fullmatch(line))]
    return 2 * len(found) >= len(samples) and any(map(is_wanted, found))


def taken_at(path: Path, options: ReadOptions, found: Exposition) -> datetime | None:
    """Return when lines without a time were scraped; raises IngestError where nothing says it."""
    moment = options.observed_at or moment_in(path.name)
    undated = found.points.filter(pl.col("ts").is_null())["series"]
    if undated.is_duplicated().any():
        raise IngestError(
            f"{path}: it has several scrapes, and nothing says when each was taken. "
            f'Write a line before each: echo "{MARK}$(date -u +%FT%TZ)".'
        )
    if moment is None and undated.len():
        raise IngestError(
            f"{path}: nothing says when a scrape was taken. Give the time with --observed-at, or "
            f"write a line `{MARK}2026-11-20T12:00:00Z` before each scrape."
        )
    return moment


def moment_in(name: str) -> datetime | None:
    """Return the moment in a file's name, naive UTC."""
    if (match := NAMED_MOMENT.search(name)) is None:
        return None
    try:
        return datetime.strptime(match[1], "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 -- it says Z
    except ValueError:
        return None
