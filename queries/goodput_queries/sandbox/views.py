"""What people may select from: marts and reference tables, with the meaning of their columns."""

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from goodput_queries.catalog.columns import meanings, unit_of
from goodput_queries.catalog.find import catalogue
from goodput_queries.database import Store

SCHEMAS = ("marts", "reference")


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
        known = meanings(model.columns, [column for column, _ in columns[name]])
        found[name] = View(
            name,
            model.description,
            tuple(model.grain),
            is_for_teams=model.access is not None,
            has_team_rows=model.access != "everyone",
            columns=tuple(
                Column(column, kind, known.get(column), unit_of(column, kind))
                for column, kind in columns[name]
            ),
        )
    return found
