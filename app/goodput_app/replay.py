"""`goodput replay`: a recording as a live source of a database that is made for it."""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from goodput_ingest.replay.clock import ReplayClock
from goodput_ingest.replay.feed import ReplayFeed
from goodput_ingest.replay.recording import Recording
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.storage.damage import wal_of
from goodput_queries.storage.file_lock import temporary_folder
from goodput_queries.storage.opening import MAGIC, MAGIC_OFFSET


@dataclass(frozen=True)
class Replay:
    """A recording with its clock, and the path of the database that it is replayed into."""

    feed: ReplayFeed
    database: Path


@contextlib.contextmanager
def replaying(
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    speed: float,
    start_at: datetime | None = None,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
) -> Iterator[Replay]:
    """Read a recording and yield its replay; its databases are temporary and removed afterwards.

    paths: files in any format that `goodput ingest auto` reads, or one Goodput database, which is
    read and not changed. start_at: where the clock begins, naive UTC. Raises GoodputError for a
    recording without evidence.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("goodput-replay-"))
        if len(paths) == 1 and is_database(paths[0]):
            source = _opened(paths[0], Path(folder))
        else:
            source = LocalStore(Path(folder) / "recording.duckdb")
            ingest.ingest(source, "auto", paths, options, on_progress=on_progress)
        stack.callback(source.close)
        recording = Recording(source)
        if recording.begins_at is None or recording.ends_at is None:
            raise GoodputError(f"{paths[0]}: nothing in this recording has a time.")
        clock = ReplayClock(recording.begins_at, recording.ends_at, speed)
        if start_at is not None:
            clock.set(start_at)
        title = paths[0].name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
        yield Replay(ReplayFeed(recording, clock, title), Path(folder) / "replay.duckdb")


def _opened(path: Path, folder: Path) -> LocalStore:
    """Open a recorded database, or a copy of one that would be changed: older, or not built."""
    try:
        return LocalStore(path, is_read_only=True)
    except StoreError as error:
        if "another process" in str(error):
            raise
    copy = folder / "recording.duckdb"
    try:
        shutil.copyfile(path, copy)
        if (wal := wal_of(str(path))).exists():
            shutil.copyfile(wal, wal_of(str(copy)))
        return LocalStore(copy)
    except OSError as error:
        raise StoreError(f"{path}: it cannot be copied to {copy} ({error.strerror}).") from error
    except StoreError as error:
        raise StoreError(str(error).replace(str(copy), str(path))) from error


def is_database(path: Path) -> bool:
    """Return whether a file is a DuckDB database."""
    try:
        with path.open("rb") as file:
            return file.read(MAGIC_OFFSET + len(MAGIC))[MAGIC_OFFSET:] == MAGIC
    except OSError:
        return False
