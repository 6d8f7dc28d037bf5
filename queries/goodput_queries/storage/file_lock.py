"""Lock files for work that one process at a time may do; a lock ends with its process."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from goodput_queries.errors import StoreError

WAIT_S = 0.1  # not zero: a file that its holder removed as it was opened is opened again


@contextlib.contextmanager
def hold_lock_file(
    path: Path, refusal: Callable[[str], str], *, wait_s: float = WAIT_S
) -> Iterator[None]:
    """Hold the lock file at `path`; it is removed afterwards.

    Raises StoreError where another process holds it for longer than `wait_s`: `refusal` of that
    process's id, or `unknown`.
    """
    if not path.parent.is_dir():  # FileLock would create it
        raise StoreError(f"{path}: cannot be written ({os.strerror(errno.ENOENT)}).")
    lock = _lock(path, wait_s)
    try:
        lock.acquire()
        path.write_text(str(os.getpid()))
    except Timeout as error:
        pid = ""
        with contextlib.suppress(OSError):  # it ended since
            pid = path.read_bytes()[:20].decode(errors="replace")
        raise StoreError(refusal(pid or "unknown")) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}).") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: a process that waits for it notices
        lock.release()


def is_held(path: Path) -> bool:
    """Say whether a process holds the lock file now."""
    try:
        with path.open(), _lock(path, 0):  # taking the lock of a file that is not there creates it
            return False
    except OSError as error:
        return isinstance(error, Timeout)


def temporary_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """Return a new temporary folder; those of the same prefix whose process was killed go first."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _folder_lock(left, fcntl.LOCK_NB):
            shutil.rmtree(left, ignore_errors=True)
    while True:
        made, lock = tempfile.TemporaryDirectory(prefix=prefix), contextlib.ExitStack()
        with contextlib.suppress(OSError):  # where a file system has no locks nobody removes it
            lock.enter_context(_folder_lock(Path(made.name)))
        if Path(made.name).exists():  # else another process took it for left before it was locked
            weakref.finalize(made, lock.close)
            return made
        lock.close()


@contextlib.contextmanager
def _folder_lock(path: Path, how: int = 0) -> Iterator[None]:
    """Hold the lock of a folder; raises OSError where it is another user's or no folder.

    how: LOCK_NB raises it, too, where another process has the lock.
    """
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(file).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "another user's", str(path))
        fcntl.flock(file, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(file)


def _lock(path: Path, wait_s: float) -> FileLock:
    return FileLock(
        path, wait_s, 0o600, thread_local=False, poll_interval=0.02, fallback_to_soft=False
    )
