"""Part of `goodput doctor`: whether the lake answers, what was loaded, what is to be done."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from goodput_app.settings import settings, settings_file
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, install_command

if TYPE_CHECKING:
    from goodput_lake.tables.lake import Lake

    Finding = tuple[str, str, str, str]  # as in doctor.py: what, status, found, next

RAY_IS_MISSING = "builds use Ray, and the package ray is not installed"


def lake_findings(db: str, store: Store | None) -> Iterator[Finding]:
    """Yield what is known of the lake of the settings, or of the database.

    store: the database, None where there is none.
    """
    known = {} if store is None else _versions(store)
    of_database = next(iter(known.values()))[0] if known else None
    url = settings().lake.url or of_database
    if url is None:
        return
    if settings().lake.engine == "ray" and find_spec("ray") is None:
        yield "lake engine", "problem", RAY_IS_MISSING, install_command("ray")
    try:
        from goodput_lake.tables.lake import FORMAT, Lake  # noqa: PLC0415 -- an extra

        lake = Lake.open(url, cluster=settings().lake_cluster)
        yield "lake", "ok", f"{lake.url}, format {FORMAT}, {lake.buckets} buckets", ""
        yield _cluster(lake)
        yield from _loads(lake)
        yield _files(lake)
        if of_database == lake.url:
            yield _behind(db, lake, {table: version for table, (_, version) in known.items()})
        elif of_database is not None:
            other = f"{db} is a database of {of_database}, not of {lake.url}"
            yield "lake of the database", "problem", other, f"fix `url` in {settings_file()}"
        elif store is not None:
            none = f"{db} is not the database of the lake: it has none of its data"
            yield "lake of the database", "missing", none, f"goodput build --lake {url} --db NEW"
    except GoodputError as error:
        yield "lake", "problem", str(error), f"fix `url` under [lake] in {settings_file()}"


def _versions(store: Store) -> dict[str, tuple[str, int]]:
    """Return the lake of a database, and up to which commit it has each table."""
    rows = store.read("select table_name, url, version from state.lake_versions").rows()
    return {table: (url, version) for table, url, version in rows}


def _cluster(lake: Lake) -> Finding:
    if lake.cluster:
        return "lake cluster", "ok", f"{lake.cluster}, of rows from here that name none", ""
    line = f'[lake]\ncluster = "NAME"\n# in {settings_file()}, where rows are loaded'
    return "lake cluster", "missing", "rows that name no cluster are of an unknown one", line


def _loads(lake: Lake) -> Iterator[Finding]:
    from goodput_lake.tables.loads import last_logged  # noqa: PLC0415 -- an extra

    tables = lake.tables()
    if not tables:
        yield "lake loads", "missing", "nothing was loaded into it", "goodput collect"
    for table in tables:
        if (last := last_logged(lake.objects, table)) is not None:
            of = f" of {last.cluster}" if last.cluster else ""
            found = f"last load {last.committed_at:%F %T}Z, from {last.source}{of}"
            yield f"lake {table}", "ok", found, ""


def _files(lake: Lake) -> Finding:
    from goodput_lake.upkeep import mergeable_files  # noqa: PLC0415 -- an extra

    merged, count = mergeable_files(lake)
    found = f"{merged:,} of {count:,} files are small ones that a compaction would merge"
    if merged * 2 <= count:
        return "lake files", "ok", found, ""
    return "lake files", "missing", found, f"goodput lake compact --lake {lake.url}, every hour"


def _behind(db: str, lake: Lake, versions: dict[str, int]) -> Finding:
    """Return how many loads a database has not taken over."""
    tables = (table for table in lake.tables() if table != "rejects")  # they come with the others
    loads = sum(len(lake.commits(table, versions.get(table, -1))) for table in tables)
    if not loads:
        return "lake of the database", "ok", f"{db} has all loads", ""
    found = f"{db} is {loads:,} load{'s' if loads > 1 else ''} behind"
    return "lake of the database", "missing", found, f"goodput build --db {db}, or serve it"
