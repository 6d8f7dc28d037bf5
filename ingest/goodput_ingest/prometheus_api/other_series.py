"""Series that packages of their own read, besides those of GPUs and hosts: of serving engines."""

from collections.abc import Callable
from functools import cache
from typing import Protocol

from goodput_ingest.formats.parsed import Parsed
from goodput_queries import packages


class OtherSeries(Protocol):
    """What a package reads of Prometheus.

    TABLE: the raw table of most of it. is_known: whether series of a name are of its exporters,
    read or not. is_histogram_part: whether they are read at the longer interval. parsed: rows of
    its series, by raw table.
    """

    TABLE: str
    is_known: Callable[[str], bool]
    is_read: Callable[[str], bool]
    is_histogram_part: Callable[[str], bool]
    parsed: Callable[..., list[Parsed]]


@cache
def of_packages() -> tuple[OtherSeries, ...]:
    """Return what installed packages read; raises PackageError where one cannot be loaded."""
    return tuple(packages.load(point) for point in packages.offered(packages.SERIES))


def is_known(name: str) -> bool:
    """Say whether series of this name are of an exporter that a package reads."""
    return any(one.is_known(name) for one in of_packages())


def is_read(name: str) -> bool:
    """Say whether a package reads series of this name."""
    return any(one.is_read(name) for one in of_packages())
