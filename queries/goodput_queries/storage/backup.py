"""A copy of a database that is in use, and putting one back in its place.

The copy is made by another program (`cp`): a second file handle of this process would release the
lock on the database as soon as it is closed.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from goodput_queries.errors import StoreError
from goodput_queries.storage import opening
from goodput_queries.storage.damage import note_ignored_wal, wal_of
from goodput_queries.storage.database_file import DatabaseFile
from goodput_queries.storage.opening import ATTACHED_AS, IN_MEMORY
from goodput_queries.storage.private import keep_private

SCHEMA: dict[str, Any] = {
    "file": pl.String,
    "bytes": pl.Int64,
    "data_until": pl.Datetime("us"),
    "batches": pl.Int64,
}
STAMP = re.compile(r"\d{8}T\d{6}Z")


def back_up(store: DatabaseFile, target: str | Path) -> pl.DataFrame:
    """Copy a database; return the file, its bytes, until when it has data, and its batches.

    target: a file that is not there yet, or a folder, in which the file is named by the time.
    Reads go on meanwhile; what writes waits for the length of the copy. The copy is opened once,
    which merges its write-ahead log, and gets its name only then. Raises StoreError.
    """
    if store.path == IN_MEMORY:
        raise StoreError("a database in memory cannot be backed up: it has no file.")
    keep_private()
    final = _named(Path(store.path), Path(target))
    draft = final.with_name(f"{final.name}.part")
    draft_wal = wal_of(str(draft))
    for left in (draft, draft_wal):  # of a backup that was killed
        left.unlink(missing_ok=True)
    try:
        with store.unchanging():
            _copy(Path(store.path), draft)
            if (wal := wal_of(store.path)).exists():
                _copy(wal, draft_wal)
        found = _summary(draft, final)
        draft.rename(final)  # not a hard link, which network file systems may lack
    except OSError as error:
        raise StoreError(f"{final}: the backup cannot be written ({error.strerror}).") from error
    finally:
        draft.unlink(missing_ok=True)
        draft_wal.unlink(missing_ok=True)
    return found


def backups_of(path: str | Path, folder: Path) -> list[Path]:
    """Return the backups of a database in a folder that were named by the time, oldest first."""
    source = Path(path)
    return sorted(
        file
        for file in folder.glob(f"{source.stem}-*{source.suffix}")
        if STAMP.fullmatch(file.stem.removeprefix(f"{source.stem}-"))
    )


def restore(
    backup: Path, path: str | Path, *, is_replacing: bool
) -> tuple[pl.DataFrame, Path | None]:
    """Make a backup the database at `path`; return its summary and where the replaced one is.

    is_replacing: a database that is there is renamed, not removed; without it that is an error.
    Raises StoreError, also where the database is in use or the backup cannot be opened.
    """
    final = Path(path)
    if not backup.is_file():
        raise StoreError(f"{backup}: there is no such file.")
    if final.exists() and not is_replacing:
        raise StoreError(
            f"{final}: this database exists. Name another file with --db, or add --replace: the "
            "present one is renamed, not removed."
        )
    if final.exists() and final.stat().st_uid != os.geteuid():
        raise StoreError(
            f"{final}: this database belongs to another user, who could not open what you put "
            "there. Run this as the user of the server."
        )
    keep_private()
    draft = final.with_name(f"{final.name}.part")
    draft.unlink(missing_ok=True)
    try:
        _copy(backup, draft)
        found = _summary(draft, final)
        replaced = _kept(final) if final.exists() else None
        if (wal := wal_of(str(final))).exists():
            raise StoreError(f"{wal}: this log is of a database that is gone; move it away first.")
        draft.replace(final)
    except OSError as error:
        raise StoreError(f"{final}: the backup cannot be put there ({error.strerror}).") from error
    finally:
        draft.unlink(missing_ok=True)
    return found, replaced


def _named(source: Path, target: Path) -> Path:
    if target.is_dir():
        target /= f"{source.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{source.suffix}"
    if target.exists():
        raise StoreError(f"{target}: this file exists; name another one.")
    if not target.parent.is_dir():
        raise StoreError(f"{target.parent}: there is no such folder.")
    return target.resolve()


def _copy(source: Path, target: Path) -> None:
    program = shutil.which("cp")
    if program is None:
        raise StoreError("the program `cp` is not on the PATH; install coreutils.")
    done = subprocess.run(  # noqa: S603 -- a program of the system, and our own paths
        [program, "--reflink=auto", "--", str(source.resolve()), str(target.resolve())],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise StoreError(f"{target}: the copy failed: {done.stderr.strip()[:500]}")


def _summary(draft: Path, final: Path) -> pl.DataFrame:
    """Open a copy, which merges its log into it, and return what it has under its final name."""
    opening.refuse_unless_duckdb(str(draft))
    with contextlib.closing(DatabaseFile(draft)) as copy:
        batches, until = copy.read(
            "select coalesce(max(sequence), 0)::bigint, max(window_end_at) from state.ingested"
        ).row(0)
    row = (str(final), draft.stat().st_size, until, batches)
    return pl.DataFrame([row], schema=SCHEMA, orient="row")


def _kept(path: Path) -> Path:
    """Give a database and its log a second name, be it damaged; raise StoreError if it is in use.

    It stays under its own name until the backup takes that: at no moment is there no database.
    Its log is merged into it first: the old database alone, without what its log holds, is there
    for a moment only where the log or the file is damaged.
    """
    if wal_of(str(path)).exists():
        _merge_log(path)
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that DuckDB takes
        except OSError as error:
            raise StoreError(
                f"{path}: another process has this database open; stop it, then run this again."
            ) from error
        replaced = path.with_name(f"{path.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        _link(path, replaced)
    if (wal := wal_of(str(path))).exists():
        _link(wal, wal_of(str(replaced)))
        wal.unlink()  # it is of the old database alone
    return replaced


def _merge_log(path: Path) -> None:
    """Merge the log of a database into it, unless it is in use or damaged."""
    with contextlib.suppress(duckdb.Error):
        root = opening.connect(str(path), is_read_only=False, threads=None, memory_mib=None)
        with contextlib.closing(root):
            note_ignored_wal(root, str(path), ATTACHED_AS)
            root.execute("checkpoint")


def _link(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:  # a file system without hard links
        _copy(path, name)
