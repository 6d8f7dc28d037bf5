"""The tables of the dashboard as `tables.toml` has them."""

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

FILE = Path(__file__).parent / "tables.toml"
TABLE = "table"  # part of a table that is no column


class Columns(dict[str, str]):
    """Columns of a table with their headers, in order.

    widths: of columns, in pixels; rows are then so high that long texts wrap
    hidden: columns that the table's menu shows on request, and that the Parquet file has
    formats: of numbers that are not shown as their suffix says, each with what stands above it
    """

    def __init__(
        self,
        names: Mapping[str, str],
        widths: Mapping[str, int] | None = None,
        hidden: Collection[str] = (),
        formats: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        super().__init__(names)
        self.widths = widths or {}
        self.hidden = hidden
        self.formats = formats or {}

    def only(self, names: Collection[str]) -> "Columns":
        """Return the columns of these names."""
        kept = {name: header for name, header in self.items() if name in names}
        return Columns(kept, self.widths, self.hidden, self.formats)

    def without(self, names: Collection[str]) -> "Columns":
        """Return the other columns."""
        return self.only(self.keys() - set(names))

    def filled(self, frame: pl.DataFrame, always: Collection[str] = ()) -> "Columns":
        """Return the columns that have a value in any row, and those that are always shown."""
        return self.only([n for n in self if n in always or frame[n].null_count() < frame.height])

    def of_clusters(self, frame: pl.DataFrame) -> "Columns":
        """Return the columns without that of the cluster, where the rows are of one."""
        return self.without(["cluster"]) if frame["cluster"].n_unique() <= 1 else self

    def hiding(self, names: Collection[str]) -> "Columns":
        """Return the columns, of which these are hidden in place of others."""
        return Columns(self, self.widths, names, self.formats)

    def with_hidden(self, names: Collection[str]) -> "Columns":
        """Return the columns, of which these are hidden, too."""
        return self.hiding((*self.hidden, *names))

    def with_more(self, more: Mapping[str, str]) -> "Columns":
        """Return the columns with more of them at the end."""
        return Columns({**self, **more}, self.widths, self.hidden, self.formats)

    @property
    def details(self) -> dict[str, str]:
        """Return the hidden columns with their headers: what a picked row shows."""
        return {name: header for name, header in self.items() if name in self.hidden}


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a table is drawn.

    key: of its element, and of the link to the row that is picked; id: the columns that identify
    that row, none: no row can be picked; rows: how many are seen at once; measure: a column without
    which a row says nothing; empty: what is said where no row says anything, and the lines that add
    some; note: what is said below; more: the same where `total` of the rows is higher than their
    number; is_of_clusters: the cluster is left out where there is one; is_short: columns without a
    value, too.
    """

    key: str
    id: tuple[str, ...] = ()
    rows: int = 12
    measure: str = ""
    empty: str = ""
    lines: tuple[str, ...] = ()
    language: str = "toml"
    note: str = ""
    more: str = ""
    is_short: bool = False
    is_of_clusters: bool = False

    def columns_of(self, frame: pl.DataFrame, columns: Columns) -> Columns:
        """Return the columns that are drawn."""
        shown = columns.of_clusters(frame) if self.is_of_clusters or self.is_short else columns
        return shown.filled(frame) if self.is_short else shown

    def says_nothing(self, frame: pl.DataFrame) -> bool:
        """Return whether no row says anything."""
        return (frame[self.measure].count() if self.measure else frame.height) == 0


@cache
def _tables() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def headers(table: str) -> Columns:
    """Return the columns of a table, such as `health.nodes`."""
    module, _, name = table.partition(".")
    looks = {
        column: look if isinstance(look, dict) else {"header": look}
        for column, look in _tables()[module][name].items()
        if column != TABLE
    }
    return Columns(
        {column: look["header"] for column, look in looks.items()},
        {column: look["width"] for column, look in looks.items() if "width" in look},
        [column for column, look in looks.items() if "hidden" in look],
        {
            column: (look["format"], look.get("label") or look["header"])
            for column, look in looks.items()
            if "format" in look
        },
    )


@cache
def table(name: str) -> Table:
    """Return how a table is drawn, such as `network.links`: its part `table`."""
    module, _, of_module = name.partition(".")
    return msgspec.convert(_tables()[module][of_module][TABLE], Table)
