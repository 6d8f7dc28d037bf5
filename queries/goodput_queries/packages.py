"""Parts that are packages of their own, found by entry points: Goodput's and those of others.

The core imports none of them and works without them; decisions 0184 and 0190 list the groups.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from typing import Any, Final

from goodput_queries.errors import GoodputError, PackageError

SQL: Final = "goodput.sql"  # a package with folders `sql` and `rules`, as the core's
SOURCES: Final = "goodput.sources"  # a `goodput_ingest.source.Source` each
LIVE: Final = "goodput.live"  # a `goodput_ingest.source.LiveSource` each
SERIES: Final = "goodput.series"  # a `goodput_ingest.prometheus_api.other_series.OtherSeries`
STORES: Final = "goodput.stores"  # `lake`: a `goodput_queries.database.LakePackage`
COMMANDS: Final = "goodput.commands"  # a command of `goodput`
CHECKS: Final = "goodput.checks"  # of `goodput doctor`: yields its findings
INSTALL_AGAIN: Final = "install Goodput again, with all its packages"
GROUPS: Final = (SQL, SOURCES, LIVE, SERIES, STORES, COMMANDS, CHECKS)


def declared(group: str) -> list[EntryPoint]:
    """Return what distributions declare under a group, by name; nothing is imported."""
    return sorted(entry_points(group=group), key=lambda point: point.name)


def is_there(point: EntryPoint) -> bool:
    """Say whether the package of an entry point is installed: it may have been left out."""
    return find_spec(point.module.partition(".")[0]) is not None


def offered(group: str) -> list[EntryPoint]:
    """Return what packages that are there offer under a group, by name."""
    return [point for point in declared(group) if is_there(point)]


@cache
def _with_sql() -> list[Traversable]:
    return [files(name) for name in ("goodput_queries", *(point.module for point in offered(SQL)))]


def in_each(*names: str) -> list[Traversable]:
    """Return a file or folder of the core, then that of each package with SQL that has it."""
    found = [folder.joinpath(*names) for folder in _with_sql()]
    return [part for part in found if part.is_dir() or part.is_file()]


def load(point: EntryPoint) -> Any:
    """Import what a package offers; raises PackageError where that fails."""
    try:
        return point.load()
    except GoodputError:
        raise
    except Exception as error:
        kind = point.group.rpartition(".")[2].removesuffix("s")
        raise PackageError(
            f"the {kind} {point.name} ({point.value}) cannot be loaded: {error}."
        ) from error


def loaded(group: str, name: str) -> Any:
    """Import what a package offers under a name; raises PackageError where none does."""
    for point in offered(group):
        if point.name == name:
            return load(point)
    nowhere = f"of a package that is not installed; {INSTALL_AGAIN}"
    raise PackageError(f"{name!r} is {left_out(name, group) or nowhere}.")


def left_out(name: str, *groups: str) -> str | None:
    """Return which package offers a name but is not installed, as words; None where none does."""
    for point in (point for group in groups for point in declared(group)):
        if point.name == name and not is_there(point):
            package = point.module.partition(".")[0]
            return f"of the package {package}, which is not installed; {INSTALL_AGAIN}"
    return None
