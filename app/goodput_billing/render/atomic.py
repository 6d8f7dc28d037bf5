"""Files that are whole or not there, whenever somebody looks and whenever the writer is killed."""

import contextlib
import os
import tempfile
from pathlib import Path


def replace(target: Path, content: bytes) -> None:
    """Put a file in its place at once: a reader sees the old one or the new one.

    Raises OSError where the folder cannot be written; the old file then stands.
    """
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(target)
        settle(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def settle(folder: Path) -> None:
    """Bring the new name of a file to the disk too, so that it outlives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
