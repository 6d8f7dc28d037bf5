"""`goodput doctor`: what is there, what is missing, and the line that adds it."""

import contextlib
import ctypes
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import polars as pl

from goodput_app import distribution
from goodput_app.cli.doctor.live_sources import live_findings
from goodput_app.cli.doctor.reports import notification_findings, otlp_findings, report_findings
from goodput_app.cli.doctor.site_files import site_findings
from goodput_app.settings import settings
from goodput_app.text.units import count
from goodput_queries import packages
from goodput_queries.database import Store, open_store
from goodput_queries.errors import GoodputError
from goodput_queries.remote import RemoteStore
from goodput_queries.storage.opening import IN_MEMORY

OPEN_WAIT_S = 1.0

Finding = tuple[str, str, str, str]  # what, status, found, next
SCHEMA = ("what", "status", "found", "next")
ORDER = ("problem", "rejected", "missing", "ok")  # of status: what to fix comes first
UNREAD_SHOWN = 5
CONTENT_MAX_CHARS = 80
UNREAD_THEN = "add a profile (docs/log-profiles.md), or write job events (docs/job-events.md)"


def findings(db: str) -> pl.DataFrame:
    """Return one row a finding: what, status (one of ORDER), found, next (what to do)."""
    rows = [
        *_versions(),
        *_database(db),
        *_of_packages(db),
        *_with_store(db, live_findings),
        *_with_store(db, site_findings),
        *report_findings(db),
        *notification_findings(),
        *otlp_findings(),
        *_machine(),
    ]
    rows.sort(key=lambda row: ORDER.index(row[1]))
    return pl.DataFrame(rows, schema=dict.fromkeys(SCHEMA, pl.String), orient="row")


def _versions() -> Iterator[Finding]:
    yield "goodput", "ok", distribution.version(), ""
    yield "python", "ok", platform.python_version(), ""
    for package in ("duckdb", "polars", "pyarrow", "streamlit"):
        yield package, "ok", version(package), ""


def _database(db: str) -> Iterator[Finding]:
    if not _exists(db):
        next_step = f"goodput ingest auto PATH --db {db}"
        if (lake := settings().lake.url) is not None:
            next_step = f"goodput build --db {db} --lake {lake}, on the host of the dashboard"
        elif settings().collect:
            next_step = f"goodput serve --db {db} makes it, or goodput collect --db {db}"
        yield "database", "missing", f"{db} is not there", next_step
        return
    try:
        store = open_store(db, wait_s=OPEN_WAIT_S)
    except GoodputError as error:
        is_held = "another process" in str(error)
        fix = f"{'stop that process, or ' if is_held else ''}--db another than {db}"
        yield "database", "problem", str(error), fix
        return
    with contextlib.closing(store):
        yield "database", "ok", f"{db}, {_holder(store)}", ""
        yield from _sources(store, db)


def _holder(store: Store) -> str:
    if isinstance(store, RemoteStore):
        return f"open in the server at {store.url} (process {store.pid})"
    return "open in no other process"


def _sources(store: Store, db: str) -> Iterator[Finding]:
    sources = store.read(
        """select source, sum(rows_new)::bigint as rows_new, sum(rows) = 0 as is_nothing_read,
            max(loaded_at) as loaded_at, max(window_end_at) as window_end_at,
            (select count(*) from raw.rejects where rejects.source = ingested.source) as rejects
        from state.ingested group by source order by source"""
    )
    if sources.is_empty():
        is_polled = bool(settings().collect or settings().lake.url)
        status = "missing" if is_polled else "problem"
        yield "sources", status, "nothing was ingested", f"goodput ingest auto PATH --db {db}"
    for row in sources.iter_rows(named=True):
        until = f", data until {row['window_end_at']:%F %T}Z" if row["window_end_at"] else ""
        found = f"{row['rows_new']:,} rows, read {row['loaded_at']:%F %T}Z{until}"
        yield f"source {row['source']}", "ok", found, ""
        if row["rejects"]:
            rejected = f"{count(row['rejects'], 'row')} rejected"
            # most often for good, and nothing that has to be mended, unless no row was left
            status = "problem" if row["is_nothing_read"] else "rejected"
            left = ", none was left" if row["is_nothing_read"] else ""
            then = "goodput show raw.rejects; goodput forget FILE takes those of a file away"
            yield f"rejects {row['source']}", status, f"{rejected}{left}", then
    yield from _unread_lines(store)


def _unread_lines(store: Store) -> Iterator[Finding]:
    """Yield files with lines that look like a fact and are not read, by the first of a reason."""
    rows = store.read(
        """select source, origin, min(line) as line, arg_min(content, line) as content, reason,
            count(*) as lines
        from raw.rejects where reason like 'the line looks like%'
        group by source, origin, reason order by lines desc, source, origin, reason limit $1""",
        [UNREAD_SHOWN],
    )
    for row in rows.iter_rows(named=True):
        shown = f"line {row['line']} ({row['content'].strip()[:CONTENT_MAX_CHARS]})"
        found = f"{row['origin']}: {count(row['lines'], 'line')} not read; {shown}"
        yield f"lines {row['source']}", "rejected", f"{found}: {row['reason']}", UNREAD_THEN


def _of_packages(db: str) -> Iterator[Finding]:
    """Yield what packages of their own find, and those that are gone or cannot be loaded."""
    for group in packages.GROUPS:
        for point in packages.declared(group):
            if not packages.is_there(point):
                lost = f"{point.name} of {group} is in {point.module}, which is not installed"
                yield f"package {point.name}", "missing", lost, "install Goodput again to have it"
    for point in packages.offered(packages.CHECKS):
        try:
            check = packages.load(point)
        except GoodputError as error:
            yield f"package {point.name}", "problem", str(error), "install it again, or remove it"
        else:
            yield from _with_store(db, check)


def _with_store(db: str, of: Callable[[str, Store | None], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        store = open_store(db, wait_s=OPEN_WAIT_S) if _exists(db) else None
    except GoodputError:  # said already
        store = None
    try:
        yield from of(db, store)
    finally:
        if store is not None:
            store.close()


def _exists(db: str) -> bool:
    return db == IN_MEMORY or Path(db).exists()


def _machine() -> Iterator[Finding]:
    path = shutil.which("sacct")
    purpose = "run it where Slurm is, then: goodput ingest slurm FILE"
    yield ("sacct", "ok", path, "") if path else ("sacct", "missing", "not on the PATH", purpose)
    yield _nvml()


def _nvml() -> Finding:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "nvml", "missing", "no libnvidia-ml.so.1", "a GPU driver; recorded data need none"
    return "nvml", "ok", "libnvidia-ml.so.1", ""
