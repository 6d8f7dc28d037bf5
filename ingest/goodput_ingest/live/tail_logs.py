"""The logs of a followed folder: the files of each name, those that were rotated away included."""

import contextlib
import fnmatch
import os
from datetime import UTC, datetime
from pathlib import Path

from goodput_ingest.formats.rotation import unrotated
from goodput_ingest.live.tail_places import Place, is_at
from goodput_queries.errors import IngestError

FILES_MAX = 100_000
# what a rotation made of what was read already
PACKED = {".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip"}

Identity = tuple[int, int]  # of a file system and of a file in it
Log = dict[Identity, Path]  # the files of one name: those rotated away first, oldest first


def logs_of(folder: str, pattern: str, places: dict[Identity, Place]) -> dict[str, Log]:
    """Return the logs of a folder whose names fit, by name, with their files.

    places: how far files were read; that of a file whose number another one got is dropped.
    """
    if not Path(folder).is_dir():
        raise IngestError(f"{folder}: there is no such folder to follow.")
    listed = sorted(Path(folder).rglob("*"))
    present, seen = set(listed), set[Identity]()
    found: dict[str, list[tuple[bool, int, Identity, Path]]] = {}
    for path in listed:
        if path.name.startswith(".") or path.suffix.lower() in PACKED:
            continue
        try:
            stat = path.stat()
        except OSError:  # gone since it was listed
            continue
        identity = (stat.st_dev, stat.st_ino)
        origin = _origin_of(path, identity, stat, pattern, present, places)
        if origin is None or identity in seen or not path.is_file():
            continue
        seen.add(identity)
        is_named_so = str(path) == origin
        found.setdefault(origin, []).append((is_named_so, stat.st_mtime_ns, identity, path))
        if len(seen) > FILES_MAX:
            raise IngestError(f"{folder}: more than {FILES_MAX:,} files. Name a pattern.")
    return {
        origin: {identity: path for _, _, identity, path in sorted(log)}
        for origin, log in found.items()
    }


def _origin_of(
    path: Path,
    identity: Identity,
    stat: os.stat_result,
    pattern: str,
    present: set[Path],
    places: dict[Identity, Place],
) -> str | None:
    """Return the name under which the file's log is known; None for one that is not followed.

    A file that is known keeps its name however it is called now, unless it is another file that
    got the number of one that was removed.
    """
    before = path.with_name(unrotated(path.name))
    fits = fnmatch.fnmatch(path.name, pattern)
    named: str | None = str(path) if fits else None
    if before != path and fnmatch.fnmatch(before.name, pattern):
        named = str(before) if before in present or not fits else named
    place = places.get(identity)
    if place is None or place.origin == named:
        return named
    try:
        with path.open("rb") as file:
            is_same = is_at(file, place, stat, may_be_snapshot=False)
    except OSError:
        return named
    if not is_same:
        del places[identity]
    return place.origin if is_same else named


def size_of(log: Log) -> int:
    """Return how many bytes the files of a log have together, those that are still there."""
    size = 0
    for path in log.values():
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def changed_at(path: Path) -> datetime | None:
    """Return when the file was written last, for formats whose content has no time."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
