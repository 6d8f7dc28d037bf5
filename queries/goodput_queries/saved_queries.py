"""Saved queries: those that ship with the product, and what people saved on the Query page."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore, Store
from goodput_queries.errors import GoodputError
from goodput_queries.evidence import load
from goodput_queries.evidence.batch import Batch
from goodput_queries.sandbox.limits import DEFAULT

_FOLDER = files("goodput_queries") / "sandbox" / "saved"
TABLE = "saved_queries"
NAME_MAX_CHARS = 80
MEANING_MAX_CHARS = 500
OWN_MAX = 200  # of one person
LOCAL = "local"  # whoever uses a server where nobody signs in


@dataclass(frozen=True)
class SavedQuery:
    """A select with a name. meaning: what its rows are. saved_by: None where it ships with us."""

    key: str
    name: str
    meaning: str
    sql: str
    is_shared: bool
    saved_by: str | None


def visible(store: Store, who: str | None) -> list[SavedQuery]:
    """Return what a person may see: what ships with the product, what is shared, their own.

    who: their name; None where nobody signs in, who sees everything.
    """
    return [*_shipped(), *(one for one in _saved(store) if _is_visible(one, who))]


def find(store: Store, key: str, who: str | None) -> SavedQuery | None:
    """Return the one of a key among those that a person may see, None where there is none."""
    shipped = (one for one in _shipped() if one.key == key)  # which the database need not say
    return next(shipped, None) or next((one for one in visible(store, who) if one.key == key), None)


def save(
    store: Store, name: str, meaning: str, sql: str, *, saved_by: str | None, is_shared: bool
) -> SavedQuery:
    """Save a select; one of the same name of the same person is replaced.

    Raises GoodputError for an empty or overlong text, and for too many of one person.
    """
    who = saved_by or LOCAL
    name, meaning, sql = name.strip(), meaning.strip(), sql.strip()
    texts = (("name", name, NAME_MAX_CHARS), ("meaning", meaning, MEANING_MAX_CHARS))
    for what, text, most in (*texts, ("statement", sql, DEFAULT.sql_max_chars)):
        if not 1 <= len(text) <= most:
            raise GoodputError(f"A {what} of 1 to {most:,} characters is needed.")
    own = [one for one in _saved(store) if one.saved_by == who]
    same = [one.key for one in own if one.name == name]
    if not same and len(own) >= OWN_MAX:
        raise GoodputError(f"You have {OWN_MAX} saved queries; delete one first.")
    key = same[0] if same else uuid.uuid4().hex[:12]
    saved = SavedQuery(key, name, meaning, sql, is_shared, who)
    _write(store, saved, sql)
    return saved


def delete(store: Store, key: str, *, asked_by: str | None) -> None:
    """Delete an own query; raises GoodputError for one that is of somebody else, or not there."""
    found = [one for one in _saved(store) if one.key == key]
    if not found or (asked_by is not None and found[0].saved_by != asked_by):
        raise GoodputError("There is no saved query of yours of that name.")
    _write(store, found[0], None)


def keep(store: Store, batch: Batch) -> None:
    """Write rows, or send them to the process that has the database open; no view reads them."""
    if not isinstance(store, LocalStore):
        store.load(batch)
        return
    with store.writing(changes_views=False) as cursor:
        load.insert_keyed(cursor, models.of_layer("state")[TABLE], batch.rows, sequence=0)


def _is_visible(one: SavedQuery, who: str | None) -> bool:
    return who is None or one.is_shared or one.saved_by == who


def _saved(store: Store) -> list[SavedQuery]:
    """Return what people saved, by name."""
    rows = store.read(
        """select query_key, name, meaning, sql, is_shared, saved_by
        from state.saved_queries
        qualify row_number() over (partition by query_key order by saved_at desc) = 1"""
    )
    found = [SavedQuery(*row) for row in rows.filter(pl.col("sql").is_not_null()).iter_rows()]
    return sorted(found, key=lambda one: (one.name.lower(), one.key))


def _write(store: Store, saved: SavedQuery, sql: str | None) -> None:
    row = {
        "query_key": saved.key,
        "name": saved.name,
        "meaning": saved.meaning,
        "sql": sql,
        "is_shared": saved.is_shared,
        "saved_by": saved.saved_by,
        "saved_at": datetime.now(UTC).replace(tzinfo=None),
    }
    frame = pl.DataFrame([row], schema_overrides={"sql": pl.String})
    keep(store, Batch(TABLE, frame, "saved-queries", "saved-queries", uuid.uuid4().hex))


@cache
def _shipped() -> list[SavedQuery]:
    """Return the selects of the folder: a comment with the name, one with the meaning, then SQL."""
    found = []
    for file in sorted(_FOLDER.iterdir(), key=lambda one: one.name):
        name, meaning, sql = file.read_text(encoding="utf-8").split("\n", 2)
        key = file.name.removesuffix(".sql")
        texts = (name.removeprefix("-- "), meaning.removeprefix("-- "), sql.strip())
        found.append(SavedQuery(key, *texts, is_shared=True, saved_by=None))
    return found
