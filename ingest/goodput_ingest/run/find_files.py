"""Finds the files of the given paths: walks folders and unpacks archives temporarily."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goodput_ingest.run import archives
from goodput_queries.errors import IngestError

NESTED_MAX = 3
UNPACKED = "unpacked"  # a folder of this name, so that folders a source looks at are the same ones


@dataclass(frozen=True)
class Found:
    """A file to read; `origin` is its path as the user knows it, through archives if need be.

    is_named: the user named this file itself, not a folder or archive with it.
    """

    path: Path
    origin: str
    is_named: bool = False


@dataclass(frozen=True)
class SkippedFile:
    """An archive, or a file in one, that is skipped, with the reason."""

    reason: str


def find_files(paths: Sequence[Path]) -> Iterator[Found | SkippedFile]:
    """Yield the files of folders and archives; raises IngestError for a path that is missing."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise IngestError(f"{missing}: there is no such file or folder.")
    for path in paths:
        for file in _walked(path):
            one = Found(file, text_of(file), is_named=file is path)
            yield from _opened(one, None, NESTED_MAX)


def text_of(path: Path) -> str:
    """Return a path as text that can be stored: bytes that are not UTF-8 are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _walked(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))


def _opened(
    one: Found, allowance: archives.Allowance | None, nested_left: int
) -> Iterator[Found | SkippedFile]:
    """Yield the file, or its contents where it is an archive."""
    if not archives.is_archive(one.path, is_named=one.is_named):
        yield one
        return
    if nested_left == 0:
        yield SkippedFile(f"{one.origin}: archives lie {NESTED_MAX} deep in one another at most.")
        return
    try:
        allowance = allowance or archives.Allowance.of(one.path)
        with tempfile.TemporaryDirectory(prefix="goodput-") as folder:
            name = one.path.name.split(".")[0] or "archive"
            inside = Path(folder) / UNPACKED / name
            inside.mkdir(parents=True)
            for reason in archives.unpack(one.path, inside, allowance):
                yield SkippedFile(f"{one.origin}: {reason}")
            for file in _walked(inside):
                origin = f"{one.origin}/{text_of(file.relative_to(inside))}"
                yield from _opened(Found(file, origin), allowance, nested_left - 1)
    except OSError as error:
        yield SkippedFile(f"{one.origin}: cannot be unpacked ({error.strerror}).")
