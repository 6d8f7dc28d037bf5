"""Forward migrations of a database file: one numbered SQL file a schema version.

`sql/migrations/0001-some-change.sql` brings a file of version 0 to version 1; its first comment
line is the sentence that is logged. Files made before versions were recorded are of version 0. All
pending migrations run in one transaction, before raw tables get the columns they lack.
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
    """Return the migrations that a database lacks; raise StoreError for one of a newer program."""
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
    return [migration for migration in known if migration.version > version]


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
