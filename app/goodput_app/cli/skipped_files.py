"""Messages about files that an ingest skipped: one sentence a reason, not one a file."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SHOWN = 3
NUMBERS = re.compile(r"\d[\d:.,T+-]*")


def skipped_files(
    refused: Sequence[str], unrecognised: Sequence[str], source: str = "auto"
) -> Iterator[str]:
    """Yield sentences: why files were refused, alike ones together, then those of another format.

    refused: `path: reason`, a sentence each; reasons are alike where only numbers and moments
    differ. source: as which format they were read, `auto`: as any.
    """
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for sentence in refused:
        path, colon, reason = sentence.partition(": ")
        alike[NUMBERS.sub("0", reason)].append((path, reason) if colon else ("", sentence))
    for files in alike.values():
        path, reason = files[0]
        if len(files) == 1:
            yield f"skipped: {path}: {reason}" if path else f"skipped: {reason}"
        else:
            yield f"skipped {len(files):,} files: {reason} {_some([name for name, _ in files])}"
    if unrecognised:
        are = "file" if len(unrecognised) == 1 else "files"
        of = "no known format" if source == "auto" else f"another format than {source}"
        yield f"{len(unrecognised):,} {are} of {of} skipped: {_some(unrecognised)}"


def named(paths: Iterable[Path]) -> str:
    """Return the paths of an ingest for a sentence on all of them."""
    return _some([str(path) for path in paths])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
