"""Work that one process at a time may do: a locked file, which a killed process lets go of."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from goodput_queries.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextlib.contextmanager
def sole(path: Path, refusal: Callable[[str], str]) -> Iterator[None]:
    """Hold the lock file at `path`, which is gone afterwards.

    Raises StoreError where another process holds it: `refusal` of that process's id, or `unknown`.
    """
    descriptor = _locked(path, refusal)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Say whether a process holds the lock file now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locked(path: Path, refusal: Callable[[str], str]) -> int:
    """Return the descriptor of the lock file, locked; of one that was removed meanwhile another."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror}).") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            raise StoreError(refusal(pid or "unknown")) from error
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
