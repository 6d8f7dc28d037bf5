"""What people may select from: marts and reference tables, with the meaning of their columns."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from goodput_queries.catalog.find import catalogue
from goodput_queries.database import Store

SCHEMAS = ("marts", "reference")
# By the end of a column's name; the longest comes first
_UNITS = {
    "_gpu_s": "seconds of a GPU",
    "_bytes_per_s": "bytes per second",
    "_bytes_per_h": "bytes per hour",
    "_per_s": "per second",
    "_per_h": "per hour",
    "gpu_ms": "milliseconds of a GPU",
    "_temperature_c": "°C",
    "_bytes": "bytes",
    "_ratio": "ratio",
    "_kwh": "kWh",
    "_cost": "money; currency in goodput.toml or the rate card",
    "_kg": "kg CO2e",
    "_mj": "mJ",
    "_hz": "Hz",
    "_ms": "milliseconds",
    "_wh": "Wh",
    "_w": "W",
    "_s": "seconds",
    "_h": "hours",
    "_j": "J",
    "_c": "°C",
}
_MOMENTS = frozenset({"hour_ms", "at_ms", "start_ms", "end_ms", "from_ms", "to_ms"})


@dataclass(frozen=True)
class Column:
    """A column of a view. meaning, unit: None where neither its name nor the view's file says."""

    name: str
    type: str
    meaning: str | None
    unit: str | None


@dataclass(frozen=True)
class View:
    """A view that people may select from.

    is_for_teams: who sees the rows of some teams only may read it, too.
    has_team_rows: its rows belong to teams.
    """

    name: str
    meaning: str
    grain: tuple[str, ...]
    is_for_teams: bool
    has_team_rows: bool
    columns: tuple[Column, ...]


_of_stores: WeakKeyDictionary[Store, dict[str, View]] = WeakKeyDictionary()
_lock = threading.Lock()


def offered(store: Store) -> dict[str, View]:
    """Return the views that a database offers, by qualified name; a build makes them."""
    with _lock:
        if (found := _of_stores.get(store)) is None:
            found = _read(store)
            if found:
                _of_stores[store] = found
        return found


def unit_of(column: str, kind: str) -> str | None:
    """Return the unit that the name of a column states, None where it has none."""
    if kind.startswith("TIMESTAMP"):
        return "UTC"
    if column in _MOMENTS:
        return "milliseconds since 1970, UTC"
    if column == "cost":
        return _UNITS["_cost"]
    if kind in ("VARCHAR", "BOOLEAN"):
        return None
    return next((unit for end, unit in _UNITS.items() if column.endswith(end)), None)


def _read(store: Store) -> dict[str, View]:
    rows = store.read(
        """select schema_name || '.' || table_name as view, column_name, data_type
        from duckdb_columns()
        where database_name = current_database() and schema_name in ('marts', 'reference')
        order by view, column_index"""
    )
    columns: dict[str, list[tuple[str, str]]] = {}
    for view, name, kind in rows.iter_rows():
        columns.setdefault(view, []).append((name, kind))
    found = {}
    for name, model in sorted(catalogue().items()):
        if name not in columns:
            continue
        meanings = _meanings(model.columns, [column for column, _ in columns[name]])
        found[name] = View(
            name,
            model.description,
            tuple(model.grain),
            is_for_teams=model.access is not None,
            has_team_rows=model.access != "everyone",
            columns=tuple(
                Column(column, kind, meanings.get(column), unit_of(column, kind))
                for column, kind in columns[name]
            ),
        )
    return found


def _meanings(given: Mapping[str, str], columns: list[str]) -> dict[str, str]:
    """Return the meaning of each column; a line of a header may go on with other columns."""
    found: dict[str, str] = {}
    for first, text in given.items():
        parts = re.split(rf"; ({'|'.join(map(re.escape, columns))}): ", f"; {first}: {text}")
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found
