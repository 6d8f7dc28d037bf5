"""From sources to the store: read, parse, then commit each batch in one short transaction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from goodput_ingest import finding
from goodput_ingest.ahead import ahead
from goodput_ingest.finding import LeftOut
from goodput_ingest.registry import SOURCES, recognise
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from goodput_ingest.source import ReadOptions
    from goodput_queries.batch import Loaded
    from goodput_queries.store import Store


@dataclass
class Summary:
    """What an ingest did, for the last line a person reads."""

    files: int = 0
    rows: int = 0
    rows_new: int = 0
    rejects: int = 0
    repeats: int = 0
    unrecognised: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # why, a sentence a file
    rows_by_table: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, loaded: Loaded) -> None:
        """Count a batch."""
        self.rows += loaded.rows
        self.rows_new += loaded.rows_new
        self.rejects += loaded.rejects
        self.repeats += loaded.is_repeat
        self.rows_by_table[table] = self.rows_by_table.get(table, 0) + loaded.rows_new


def ingest(
    store: Store,
    name: str,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
) -> Summary:
    """Read files (folders and archives are walked) as source `name` (`auto`: by content) in.

    A file that is refused (not this format, or it lacks what only a person knows, as a time zone)
    is listed in the summary and the others are read. Only a file that is itself in `paths` of a
    named source raises IngestError at once.
    """
    if name != "auto" and name not in SOURCES:
        raise IngestError(f"there is no source {name!r}; known: auto, {', '.join(SOURCES)}.")
    summary = Summary()
    for found in finding.found(paths):
        if isinstance(found, LeftOut):
            summary.refused.append(found.reason)
            continue
        kind = recognise(found.path) if name == "auto" else SOURCES[name]
        if kind is None:
            summary.unrecognised.append(found.origin)
            continue
        try:
            for batch in ahead(kind(found.path, options).extract()):
                loaded = store.load(replace(batch, origin=found.origin))
                summary.add(batch.table, loaded)
                on_progress(Path(found.origin), loaded.rows)
        except IngestError as error:
            if name != "auto" and found.is_named:
                raise
            summary.refused.append(str(error).replace(str(found.path), found.origin))
        else:
            summary.files += 1
    return summary
