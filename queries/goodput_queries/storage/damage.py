"""Error messages for a damaged database file, with the steps to recover."""

import logging
import re
import shlex
import shutil
from pathlib import Path

import duckdb

log = logging.getLogger(__name__)

DAMAGED = re.compile(
    r"Corrupt (?:database |WAL )?file|computed checksum|Could not read enough bytes"
    r"|not a valid DuckDB database|Failed to decode LEB128|Serialization Error"
    r"|This block was written with a mode"
)
REPLAY = "Failure while replaying WAL file"


def sentence(path: str, error: BaseException, *, is_opening: bool = False) -> str | None:
    """Return what to say of an error that comes from a damaged file; None of any other.

    is_opening: the file is not open yet: what fails inside DuckDB then is what it read
    """
    text = str(error)
    reason = text.splitlines()[0] if text else type(error).__name__
    if REPLAY in text:
        wal = wal_of(path)
        return (
            f"{wal}: the write-ahead log is damaged and cannot be replayed. Restore {path} and "
            f"this file from a copy; or open the database without the last writes: "
            f"`mv {shlex.quote(str(wal))} {shlex.quote(str(wal))}.damaged`. ({reason})"
        )
    if not (DAMAGED.search(text) or (is_opening and "INTERNAL Error" in text)):
        return None
    return (
        f"{path}: the database file is damaged: it was cut, or something else wrote into it. "
        "Restore it from a copy; or move it away and ingest the recorded files again "
        f"(`goodput ingest auto PATH --db {shlex.quote(path)}`). ({reason})"
    )


def wal_of(path: str) -> Path:
    """Return the path of the write-ahead log of a database file."""
    return Path(f"{path}.wal")


def wal_bytes(path: str) -> int:
    """Return the size of the write-ahead log; 0: there is none."""
    try:
        return wal_of(path).stat().st_size
    except OSError:
        return 0


def note_ignored_wal(root: duckdb.DuckDBPyConnection, path: str, name: str) -> None:
    """Keep a write-ahead log of which DuckDB read nothing, which the next write replaces; say so.

    name: of the attached database. The log is looked for once the database is open: until then a
    process that is about to end may still write its log into the database and remove it.
    """
    size = wal_bytes(path)
    if not size:
        return
    read = root.execute(
        "select wal_size from pragma_database_size() where database_name = $1", [name]
    ).fetchall()
    if read != [("0 bytes",)]:
        return
    wal = wal_of(path)
    kept = wal.with_name(f"{wal.name}.unreadable")
    try:
        shutil.copyfile(wal, kept)
    except OSError:
        kept = wal
    log.warning(
        "%s: nothing could be read from this write-ahead log (%d bytes: a write that was not "
        "finished, or damage), so it was ignored; a copy is in %s. What it held is not in the "
        "database: ingest the latest files again.",
        wal, size, kept,
    )  # fmt: skip
