"""Messages about files that an ingest skipped: one sentence a reason, not one a file."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SHOWN = 3
IN_BRACKETS = re.compile(r"\([^()]*\)")  # contents of lines
NUMBERS = re.compile(r"\d[\d:.,T+-]*")


def skipped_files(
    refused: Sequence[str], unrecognised: Sequence[str], source: str = "auto"
) -> Iterator[str]:
    """Yield sentences: why files were refused, alike ones together, then those of another format.

    refused: `path: reason`, a sentence each; reasons are alike where only numbers and moments
    differ. source: as which format they were read, `auto`: as any.
    """
    for paths, reason in _alike(refused):
        if len(paths) > 1:
            yield f"skipped {len(paths):,} files: {reason} {_some(paths)}"
        else:
            yield f"skipped: {paths[0]}: {reason}" if paths[0] else f"skipped: {reason}"
    if unrecognised:
        are = "file" if len(unrecognised) == 1 else "files"
        of = "no known format" if source == "auto" else f"another format than {source}"
        yield f"{len(unrecognised):,} {are} of {of} skipped: {_some(unrecognised)}"


def gaps_of_files(gaps: Sequence[str]) -> Iterator[str]:
    """Yield what files did not give: `path: reason`, alike ones together."""
    for paths, reason in _alike(gaps):
        if len(paths) > 1:
            yield f"{len(paths):,} files: {reason} {_some(paths)}"
        else:
            yield f"{paths[0]}: {reason}"


def _alike(sentences: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the paths of sentences `path: reason` whose reasons are alike, and the first reason."""
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for sentence in sentences:
        path, colon, reason = sentence.partition(": ")
        what = NUMBERS.sub("0", IN_BRACKETS.sub("", reason))
        alike[what].append((path, reason) if colon else ("", sentence))
    for files in alike.values():
        yield [path for path, _ in files], files[0][1]


def named(paths: Iterable[Path | str]) -> str:
    """Return the paths of an ingest for a sentence on all of them."""
    return _some([str(path) for path in paths])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
