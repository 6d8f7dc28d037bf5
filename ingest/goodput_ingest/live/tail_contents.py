"""What followed logs gave, and what those of their kind usually give and these did not."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from goodput_ingest.formats import files
from goodput_ingest.run.contents import RARE, Contents
from goodput_ingest.run.hints import hint_of
from goodput_ingest.source import Batch, ContinuedSource, ReadOptions, Source
from goodput_queries.errors import IngestError

BECAUSE: Final = ("; line ", "; the ")  # why it lacks them: without a reason a log may be young
SHOWN: Final = 3
OPTION: Final = re.compile(r"`?--(cluster|timezone|node)\b(?: ([\w/+-]*[A-Z0-9]\b))?`?")
LOOKED_AT_BYTES: Final = 16 * 1024 * 1024  # of a file, for its findings


class FollowedContents:
    """Contents of logs by origin, since this process reads them."""

    def __init__(self) -> None:
        self._of: dict[str, Contents] = {}

    def add(self, origin: str, source: str, batch: Batch) -> None:
        """Count a batch of a log."""
        self._of.setdefault(origin, Contents(source)).add(batch)

    def keep(self, origins: Iterable[str]) -> None:
        """Forget all logs but these."""
        kept = set(origins)
        self._of = {origin: one for origin, one in self._of.items() if origin in kept}

    def gaps(self, readers: Mapping[str, ContinuedSource]) -> str | None:
        """Return a sentence on logs with lines that almost matched and nothing that did."""
        found = [
            f"{origin}: {gap}"
            for origin, one in self._of.items()
            if one.source not in RARE
            for gap in one.gaps(readers.get(origin))
            if any(reason in gap for reason in BECAUSE)
        ]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{found[0]}{more}" if found else None


def as_settings(message: str) -> str:
    """Return advice to give an option of `goodput ingest` as the setting of a `[[collect]]`."""

    def setting(found: re.Match[str]) -> str:
        value = f' = "{found[2]}"' if found[2] else ""
        return f"`{found[1]}{value}` under [[collect]]"

    return OPTION.sub(setting, message)


def findings(
    paths: Iterable[Path], kind: type[Source], options: Mapping[Path, ReadOptions]
) -> Iterator[str]:
    """Yield what the first files lack, a sentence each: no step, no finished save, no row."""
    gaps = (gap for path in paths for gap in _gaps(path, kind, options[path]))
    yield from islice(gaps, SHOWN)


def _gaps(path: Path, kind: type[Source], options: ReadOptions) -> Iterator[str]:
    head = files.head(path)
    if not kind.recognises(path, head):
        if hint := hint_of(head):
            yield f"{path}: {hint}"
        return
    if kind.name in RARE or path.stat().st_size > LOOKED_AT_BYTES:
        return
    contents, source = Contents(kind.name), kind(path, options)
    try:
        for batch in source.extract():
            contents.add(batch)
    except IngestError as error:
        yield as_settings(str(error))
        return
    for gap in contents.gaps(source):
        yield f"{path}: {gap}"
