"""Finds repeated keys in the frame of a batch, in a tenth of the database's time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

MICROSECONDS: Final = pl.Datetime("us")
RUN_MIN_ROWS: Final = 8  # shorter runs are no sooner compared than hashed
RANGED: Final = frozenset({"BIGINT", "INTEGER", "TIMESTAMP"})  # key types that zone maps know well


@dataclass(frozen=True)
class Keys:
    """Keys of a batch.

    may_repeat: whether two rows may have one key. ends: the least and the greatest of ranged key
    columns without nulls, as whole numbers; of moments microseconds.
    """

    may_repeat: bool
    ends: Mapping[str, tuple[int, int]]


def keys_of(rows: pl.DataFrame, key: Sequence[str]) -> Keys:
    """Return the keys of rows, where these `are_as_stored`.

    key: the columns of the table's key.
    """
    present = _present(rows, key)
    ranged = [n for n in present if _is_ranged(rows.schema[n]) and not rows[n].null_count()]
    numbers = {name: rows[name].to_physical() for name in ranged}
    return Keys(
        _may_repeat(rows.select(present)),
        {name: (n.min(), n.max()) for name, n in numbers.items()},  # type: ignore[misc]
    )


def are_as_stored(rows: pl.DataFrame, key: Sequence[str], kinds: Mapping[str, str]) -> bool:
    """Say whether keys are equal in the database exactly where they are equal in the frame.

    Else they are to be cast first. kinds: the types of the columns in the database, by name.
    """
    return all(_is_as_stored(rows.schema[name], kinds[name]) for name in _present(rows, key))


def _present(rows: pl.DataFrame, key: Sequence[str]) -> list[str]:
    return [name for name in key if name in rows.columns and rows.schema[name] != pl.Null]


def _is_ranged(kind: pl.DataType) -> bool:
    return kind == MICROSECONDS or kind.is_integer()


def _is_as_stored(kind: pl.DataType, stored: str) -> bool:
    if stored == "VARCHAR":
        return isinstance(kind, (pl.String, pl.Categorical, pl.Enum))
    if stored == "TIMESTAMP":
        return kind == MICROSECONDS
    if stored == "DOUBLE":
        return kind == pl.Float64
    return stored in RANGED and kind.is_integer()


def _may_repeat(keys: pl.DataFrame) -> bool:
    varying = keys.select(column for column in keys if not _is_constant(column))
    if not varying.width:
        return keys.height > 1
    return not _rises_in_runs(varying) and varying.hash_rows().n_unique() < keys.height


def _is_constant(column: pl.Series) -> bool:
    first = column.head(1)
    return bool(column.tail(1).eq_missing(first).all()) and bool(column.eq_missing(first).all())


def _rises_in_runs(keys: pl.DataFrame) -> bool:
    """Say whether rows are sorted as exports of readings mostly are, by thing and moment.

    Each thing's rows then are one run in which a moment or number rises: no key comes twice.
    """
    rising = [name for name, kind in keys.schema.items() if kind == MICROSECONDS]
    if not rising:
        return False
    before, after = keys.slice(0, keys.height - 1), keys.slice(1)
    things = [name for name in keys.columns if name != rising[-1]]
    if not things:
        return bool((after[rising[-1]] > before[rising[-1]]).fill_null(value=False).all())
    is_next = after[things[0]].ne_missing(before[things[0]])
    for name in things[1:]:
        is_next |= after[name].ne_missing(before[name])
    runs = int(is_next.sum()) + 1
    if runs * RUN_MIN_ROWS > keys.height:
        return False
    rises = (after[rising[-1]] > before[rising[-1]]).fill_null(value=False)
    if not (is_next | rises).all():
        return False
    starts = pl.concat([keys.head(1), after.filter(is_next)]).select(things)
    return starts.hash_rows().n_unique() == runs
