"""The tables of the dashboard as `tables.toml` has them."""

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

FILE = Path(__file__).parent / "tables.toml"


class Columns(dict[str, str]):
    """Columns of a table with their headers, in order.

    widths: of columns, in pixels; rows are then so high that long texts wrap
    hidden: columns that the table's menu shows on request, and that the Parquet file has
    """

    def __init__(
        self,
        names: Mapping[str, str],
        widths: Mapping[str, int] | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        super().__init__(names)
        self.widths = widths or {}
        self.hidden = hidden

    def only(self, names: Collection[str]) -> "Columns":
        """Return the columns of these names."""
        kept = {name: header for name, header in self.items() if name in names}
        return Columns(kept, self.widths, self.hidden)

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
        return Columns(self, self.widths, names)

    @property
    def details(self) -> dict[str, str]:
        """Return the hidden columns with their headers: what a picked row shows."""
        return {name: header for name, header in self.items() if name in self.hidden}


@cache
def _tables() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def headers(table: str) -> Columns:
    """Return the columns of a table, such as `health.nodes`."""
    module, _, name = table.partition(".")
    looks = {
        column: look if isinstance(look, dict) else {"header": look}
        for column, look in _tables()[module][name].items()
    }
    return Columns(
        {column: look["header"] for column, look in looks.items()},
        {column: look["width"] for column, look in looks.items() if "width" in look},
        [column for column, look in looks.items() if "hidden" in look],
    )
