"""What each kind of evidence shows on which page: `evidence.csv`, held against sources by tests."""

import csv
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class Evidence:
    """A kind of evidence: the sources that bring it, its raw tables, and pages that show it."""

    evidence: str
    sources: tuple[str, ...]
    tables: tuple[str, ...]
    pages: tuple[str, ...]
    shows: str


@cache
def kinds() -> tuple[Evidence, ...]:
    """Return all kinds, the most telling first."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Evidence(
                evidence=row["evidence"],
                sources=tuple(row["sources"].split()),
                tables=tuple(row["tables"].split()),
                pages=tuple(row["pages"].split()),
                shows=row["shows"],
            )
            for row in csv.DictReader(file)
        )


def missing(tables: Collection[str]) -> list[Evidence]:
    """Return the kinds of which no table has rows. tables: those that have some."""
    return [kind for kind in kinds() if not set(kind.tables) & set(tables)]
