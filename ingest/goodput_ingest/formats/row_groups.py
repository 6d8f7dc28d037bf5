"""Rows of one table, held until they fill row groups of DuckDB's.

A whole row group is written at once; what is left over goes by way of the log, and the next
checkpoint rewrites it, with its neighbours.
"""

from dataclasses import dataclass, field

import polars as pl

from goodput_ingest.formats.parsed import Parsed
from goodput_queries.storage.row_groups import ROW_GROUP


@dataclass
class Held:
    """What was parsed for one table and not handed on yet."""

    table: str
    parts: list[Parsed] = field(default_factory=list)

    def add(self, parsed: Parsed) -> None:
        """Hold some more."""
        self.parts.append(parsed)

    def whole_groups(self) -> Parsed | None:
        """Hand on whole row groups, all but one: with the last goes what is left over."""
        groups = sum(part.rows.height for part in self.parts) // ROW_GROUP - 1
        if groups < 1:
            return None
        found = joined(self.parts)
        self.parts = [Parsed(self.table, found.rows[groups * ROW_GROUP :])]
        return Parsed(self.table, found.rows[: groups * ROW_GROUP], found.rejects)

    def rest(self) -> Parsed:
        """Return what is held at the end."""
        return joined(self.parts)


def joined(parts: list[Parsed]) -> Parsed:
    """Return parts of one table as one."""
    if len(parts) == 1:
        return parts[0]
    kinds = [part.rows.schema for part in parts]
    differ = {
        name
        for schema in kinds
        for name, kind in schema.items()
        if isinstance(kind, pl.Enum) and any(other.get(name, kind) != kind for other in kinds)
    }  # a part may have an Enum of its own GPUs
    rows = [
        part.rows.cast(dict.fromkeys(differ & set(part.rows.columns), pl.String)) for part in parts
    ]
    rejects = [reject for part in parts for reject in part.rejects]
    return Parsed(parts[0].table, pl.concat(rows, how="diagonal_relaxed"), rejects)
