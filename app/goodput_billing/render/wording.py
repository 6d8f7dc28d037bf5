"""How a statement writes what it says: amounts, hours, changes, and tables of such texts."""

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from importlib.resources import files
from typing import Any

from goodput_billing.statement.amounts.charges import MS_PER_HOUR
from goodput_billing.statement.amounts.currency import DEFAULT, decimals, sign
from goodput_billing.statement.amounts.rounding import apportion, nearest
from goodput_billing.statement.statement import Statement

UNKNOWN = "unknown"
NONE = "\N{EN DASH}"
_CENTIHOUR_MS = MS_PER_HOUR // 100


@dataclass(frozen=True)
class Table:
    """A table of texts: a title, what it says, its columns (True: numbers, to the right), rows.

    total: a last row that the others add up to, or None.
    """

    title: str
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    note: str = ""
    total: Sequence[str] | None = None


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "tables.toml").read_text("utf-8"))


def table(
    name: str,
    statement: Statement,
    rows: Sequence[Sequence[str]],
    total: Sequence[str] | None = None,
    *,
    title: str | None = None,
    note: str | None = None,
) -> Table:
    """Return a table of `tables.toml`; title, note: others than there."""
    of, code = _tables()[name], statement.policy.currency
    words = {"unit": sign(code).strip(), "code": code, "month": f"{statement.day.date:%B}"}
    columns = [(text.rstrip("#").format(**words), text.endswith("#")) for text in of["columns"]]
    named = title or of["title"].format(**words)
    return Table(named, columns, rows, of.get("note", "") if note is None else note, total)


Money = Callable[..., str]


def account_name(statement: Statement, row: dict[str, Any]) -> str:
    """Return the account, with its cluster where there are several."""
    several = statement.accounts["cluster"].n_unique() > 1
    return f"{row['account']} ({row['cluster']})" if several else str(row["account"])


def empty_tables_left_out(tables: Iterable[Table]) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


def amounts(code: str) -> Money:
    """Return what writes amounts of a currency: `money` with its decimals."""
    return partial(money, code=code)


def money(amount: Decimal | float | None, none: str = NONE, *, code: str = DEFAULT) -> str:
    """Return an amount with separators and the decimals of its currency, without its sign."""
    return none if amount is None else f"{amount:,.{decimals(code)}f}"


def hours(ms: int) -> str:
    """Return GPU milliseconds as GPU-hours with one decimal, two below ten."""
    value = ms / MS_PER_HOUR
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}"


def hours_that_add_up(parts: Sequence[int]) -> list[str]:
    """Return GPU milliseconds as GPU-hours with two decimals that add up to those of their sum."""
    found = apportion(parts, nearest(sum(parts), _CENTIHOUR_MS), _CENTIHOUR_MS)
    return [f"{Decimal(part).scaleb(-2):,.2f}" for part in found]


def change(now: Decimal, before: Decimal | None) -> str:
    """Return a change in percent; a word where there is nothing to compare with."""
    if before is None:
        return "no data"
    if not before:
        return NONE if not now else "new"
    return f"{(now - before) / before * 100:+,.1f} %"


def percent(part: int, whole: int) -> str:
    """Return a part in percent of the whole, one decimal."""
    return f"{part / whole * 100:.1f} %" if whole else NONE


def price(cost: Decimal) -> str:
    """Return a price with all its decimals, two at least."""
    text = f"{cost.normalize():f}"
    return text if len(text.partition(".")[2]) >= 2 else f"{cost:.2f}"
