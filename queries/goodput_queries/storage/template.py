"""The template database: an empty one in the user's cache folder, of which new ones are copies.

Binding and storing all views takes 3 CPU s, a copy of them 0.05. Where no template can be kept (no
home, a folder that is only to be read, a full disk), or none can be copied, a database is created
from the SQL files.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from goodput_queries.errors import GoodputError
from goodput_queries.storage import damage, migrations, schema
from goodput_queries.storage.file_lock import hold_lock_file

KEPT = 4  # so that two versions that are used in turn do not replace each other's
WAIT_S = 30.0  # for a process that makes the template now
WRITABLE_BY_OTHERS = 0o022


def cache_folder() -> Path:
    """Return where what can be made again is kept for this user: `$XDG_CACHE_HOME/goodput`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "goodput"


def copy_to(path: Path, create: Callable[[Path], None]) -> None:
    """Copy the template to a path where no database is; it appears there whole or not at all.

    create: writes an empty database to a path; its file becomes the template where there is none
    """
    # a log that a removed database left would be replayed into its copy
    if os.path.lexists(path) or damage.wal_of(str(path)).exists():
        return
    with (
        # RuntimeError: this user has no home
        contextlib.suppress(OSError, RuntimeError, GoodputError, duckdb.Error),
        tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as draft,
    ):
        folder = cache_folder() / "template"
        draft.write(_found(folder) or _made(folder, create))
        draft.flush()
        os.fsync(draft.fileno())  # what is loaded later may be durable before this is
        os.link(draft.name, path)  # fails where another process was faster


def _found(folder: Path) -> bytes | None:
    """Return the content of the template; None: there is none that can be trusted."""
    for path in folder.glob(f"{_key()}-*.duckdb"):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid == os.geteuid() and not status.st_mode & WRITABLE_BY_OTHERS:
                content = file.read()
                if path.stem.endswith(_digest(content)):
                    return content
    return None


def _made(folder: Path, create: Callable[[Path], None]) -> bytes:
    """Make the template, one process at a time, and remove the oldest ones; return its content."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock_file(folder / "lock", "process {} makes the template".format, wait_s=WAIT_S):
        if (content := _found(folder)) is not None:
            return content
        for older in sorted(folder.glob("*.duckdb"), key=lambda p: p.stat().st_mtime)[: 1 - KEPT]:
            older.unlink()
        draft = folder / "draft"
        draft.unlink(missing_ok=True)  # of a process that was killed
        create(draft)
        content = draft.read_bytes()
        draft.replace(folder / f"{_key()}-{_digest(content)}.duckdb")
    return content


def _key() -> str:
    """Return the part of the name that says what a template is made of."""
    version = migrations.current_version(migrations.migrations())
    return f"{schema.catalog_digest()[:16]}-{version}-{duckdb.__version__}"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
