"""Forward migrations of a database file: one numbered SQL file a schema version.

`sql/migrations/0003-some-change.sql` brings a file of version 2 to version 3; its first comment
line is the sentence that is logged. The first file starts from the version of release 0.1.0: what
is older is refused. All pending migrations run in one transaction, before raw tables get the
columns they lack.
"""

import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import duckdb

from goodput_queries.errors import StoreError

log = logging.getLogger(__name__)

_FILE = re.compile(r"(?P<version>\d{4})-[a-z0-9-]+\.sql")


@dataclass(frozen=True)
class Migration:
    """The step to one schema version: what it changes, in a sentence, and its statements."""

    version: int
    sentence: str
    sql: str


def migrations() -> list[Migration]:
    """Return all migrations in the order of their versions."""
    found = []
    for file in (files("goodput_queries") / "sql" / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            sql = file.read_text(encoding="utf-8")
            sentence = sql.splitlines()[0].removeprefix("--").strip()
            found.append(Migration(int(match["version"]), sentence, sql))
    return sorted(found, key=lambda migration: migration.version)


def current_version(known: Sequence[Migration]) -> int:
    """Return the schema version that this program reads and writes."""
    return max((migration.version for migration in known), default=0)


def recorded_version(cursor: duckdb.DuckDBPyConnection) -> int | None:
    """Return the schema version of an open database; None: it is new."""
    # `duckdb_columns` would bind every view of the file
    is_there = cursor.execute(
        """select count(*) from duckdb_tables()
        where database_name = current_database()
            and schema_name = 'raw' and table_name = 'catalog'"""
    ).fetchall()[0][0]
    if not is_there:
        return None
    described = cursor.execute("describe raw.catalog").fetchall()
    if "schema_version" not in {column for column, *_ in described}:
        return 0
    found = cursor.execute("select max(schema_version) from raw.catalog").fetchall()[0][0]
    return int(found or 0)


def pending(
    cursor: duckdb.DuckDBPyConnection, path: str, known: Sequence[Migration]
) -> list[Migration]:
    """Return the migrations that a database lacks; raise StoreError for one it cannot read."""
    version = recorded_version(cursor)
    current = current_version(known)
    if version is not None and version > current:
        raise StoreError(
            f"{path}: a newer Goodput wrote this database (schema version {version}; this one "
            f"reads up to {current}). Nothing was changed. Install the newer Goodput again, or "
            "name another database with --db."
        )
    if version is None:
        return []
    missing = [migration for migration in known if migration.version > version]
    if missing and missing[0].version > version + 1:
        raise StoreError(
            f"{path}: a Goodput before release 0.1.0 wrote this database (schema version "
            f"{version}; this one reads {known[0].version - 1} to {current}). Nothing was changed. "
            "Ingest its files into a new database, or name another one with --db."
        )
    return missing


def copy_before(path: str, missing: Sequence[Migration]) -> Path:
    """Copy a closed database file before its migrations; raise StoreError where that fails."""
    copy = Path(f"{path}.before-version-{missing[-1].version}")
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise StoreError(
            f"{path}: it has to be migrated to schema version {missing[-1].version}, and the copy "
            f"that is kept until then cannot be written ({error}). Free as much disk space as the "
            "database takes, then start again. Nothing was changed."
        ) from error
    return copy


def migrate(cursor: duckdb.DuckDBPyConnection, path: str, missing: Sequence[Migration]) -> None:
    """Run migrations inside the caller's transaction; log one sentence for each."""
    for migration in missing:
        cursor.execute(migration.sql)
        log.warning(
            "%s: migrated to schema version %d: %s", path, migration.version, migration.sentence
        )


def record_version(
    cursor: duckdb.DuckDBPyConnection, digest: str, known: Sequence[Migration]
) -> None:
    """Record the digest of the SQL files and the schema version of a database."""
    cursor.execute("alter table raw.catalog add column if not exists schema_version integer")
    cursor.execute("delete from raw.catalog")
    cursor.execute("insert into raw.catalog values ($1, $2)", [digest, current_version(known)])
