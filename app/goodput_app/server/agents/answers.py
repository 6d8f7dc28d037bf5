"""An answer to a program: rows with what their columns mean, and what they rest on, as JSON.

Names, evidence and log lines in it are of others: long ones are cut, and no answer is longer than
`ANSWER_MAX_CHARS`; an answer that was cut says so.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from goodput_app.access import rows
from goodput_app.page_links import filters_of, iso
from goodput_app.row_formats import UNPRINTABLE, plain
from goodput_app.text import headline, units
from goodput_messages.printable import printable
from goodput_queries.catalog.columns import meanings, unit_of
from goodput_queries.errors import NoEvidenceError
from goodput_queries.sandbox.views import Column, View
from goodput_queries.scope import Scope
from goodput_queries.storage.database_file import Reader

ANSWER_MAX_CHARS: Final = 40_000
CELL_MAX_CHARS: Final = 400
ROWS_MAX: Final = 200


@dataclass(frozen=True)
class Table:
    """Rows of a view. columns: those of it that are wanted; empty: all. limit: of its rows."""

    name: str
    view: View
    rows: pl.DataFrame
    columns: Sequence[str] = ()
    limit: int = ROWS_MAX

    @property
    def shown(self) -> pl.DataFrame:
        """Return the rows and columns that are wanted."""
        found = self.rows.head(self.limit)
        return found.select(self.columns) if self.columns else found

    def described(self) -> dict[str, dict[str, str]]:
        """Return unit and meaning of each column, as far as they are known."""
        of_view = {column.name: column for column in self.view.columns}
        known = meanings({}, self.shown.columns)
        found = {}
        for name, kind in self.shown.schema.items():
            of_type = "TIMESTAMP" if kind.is_temporal() else "DOUBLE" if kind.is_numeric() else ""
            own = Column(name, of_type, known.get(name), unit_of(name, of_type or "VARCHAR"))
            column = of_view.get(name, own)
            texts = {"unit": column.unit, "meaning": column.meaning}
            found[name] = {key: text for key, text in texts.items() if text}
        return found


@dataclass(frozen=True)
class Answer:
    """Tables about a scope. page: that shows them. notes: what a reader has to know."""

    scope: Scope
    tables: Sequence[Table]
    page: str
    evidence: str = ""
    data_range: tuple[object, object] = (None, None)
    notes: Sequence[str] = field(default_factory=tuple)

    def as_json(self) -> str:
        """Return the answer; tables have as many rows as fit, the first tables first."""
        head: dict[str, Any] = {
            "time_range": {
                "from": iso(self.scope.from_ms),
                "to": iso(self.scope.to_ms),
                "data_from": plain(self.data_range[0]),
                "data_to": plain(self.data_range[1]),
            },
            "filters": {name: _cell(value) for name, value in filters_of(self.scope).items()},
            "evidence": self.evidence,
            "page": self.page,
            "currency": units.currency(),
            "is_limited_to_your_teams": rows.teams() is not None,
            "notes": list(self.notes),
        }
        heads = [
            {
                "name": table.name,
                "view": table.view.name,
                "meaning": table.view.meaning,
                "columns": table.described(),
            }
            for table in self.tables
        ]
        left = ANSWER_MAX_CHARS - len(_text(head)) - sum(200 + len(_text(one)) for one in heads)
        tables = []
        for table, described in zip(self.tables, heads, strict=True):
            fitting, left = _fitting(table.shown, left)
            is_cut = len(fitting) < table.rows.height
            counted = {"is_truncated": is_cut, "row_count": len(fitting)}
            tables.append({**described, **counted, "rows": fitting})
        return _text({**head, "tables": tables})


def evidence_of(store: Reader, scope: Scope) -> str:
    """Return goodput of a scope in a sentence, with how much of the time evidence covers."""
    window = Scope(scope.from_ms, scope.to_ms, scope.cluster)  # finer filters change no rung
    (row,) = store.read("select * from marts.goodput_summary", scope=scope).to_dicts()
    (ladder,) = store.read("select * from marts.evidence_ladder", scope=window).to_dicts()
    return headline.headline(row, ladder, rows.limited(scope)).sentence


def data_range_of(store: Reader, cluster: str | None) -> tuple[object, object]:
    """Return the first and the last moment of the evidence; raises NoEvidenceError without any."""
    sql = """select min(first_at), max(as_of_at) from marts.clusters
        where $1::varchar is null or cluster = $1"""
    first, last = store.read(sql, [cluster]).row(0)
    if first is None:
        raise NoEvidenceError("there is no evidence yet: `goodput ingest auto PATH` loads it.")
    return first, last


def _fitting(frame: pl.DataFrame, left: int) -> tuple[list[dict[str, object]], int]:
    """Return rows of up to so many characters as JSON, and how many are left."""
    fitting: list[dict[str, object]] = []
    for row in frame.iter_rows(named=True):
        cells = {name: _cell(value) for name, value in row.items()}
        left -= len(_text(cells)) + 2
        if left < 0:
            return fitting, 0
        fitting.append(cells)
    return fitting, left


def _cell(value: object) -> object:
    """Return a value as JSON has it; a long text or list as its begin."""
    found = plain(value)
    text = found if isinstance(found, str) else ""
    if isinstance(found, (dict, list)) and len(text := json.dumps(found)) <= CELL_MAX_CHARS:
        return found
    if not text:
        return found
    text = printable(text)
    return text if len(text) <= CELL_MAX_CHARS else f"{text[: CELL_MAX_CHARS - 1]}…"


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
