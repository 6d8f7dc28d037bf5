"""The files of a table of the lake at one version, of which a build asks many times."""

from functools import cached_property

import polars as pl
from deltalake import DeltaTable

from goodput_lake.tables.arrange import BUCKET, DAY, DIGEST
from goodput_lake.tables.selection import Selection


class FileList:
    """The files that a version of a table has: what comes later is not in it."""

    def __init__(self, table: DeltaTable) -> None:
        """Take an open table; its log is looked through once."""
        self.version: int = table.version()
        self._table = table

    def matching(self, selection: Selection) -> list[str]:
        """Return the paths of the files that may have rows of a selection.

        The files have other rows too: filter times and digests. Partition columns are not in them.
        """
        files = self._files
        for column, operator, value in selection.of_files():
            if column in (DAY, BUCKET):
                of_file = pl.col(f"partition.{column}")
                condition = (
                    of_file.is_in(value)
                    if operator == "in"
                    else _compared(of_file, operator, value)
                )
            elif f"min.{column}" not in files.columns:
                continue
            elif operator == "in" and column == DIGEST:
                least, most = pl.col(f"min.{column}"), pl.col(f"max.{column}")
                condition = pl.any_horizontal([(least <= one) & (most >= one) for one in value])
            else:
                condition = _compared(
                    pl.col(f"{'max' if operator == '>=' else 'min'}.{column}"), operator, value
                )
            files = files.filter(condition.fill_null(True))
        return files["uri"].sort().to_list()

    @cached_property
    def _files(self) -> pl.DataFrame:
        found = pl.DataFrame(self._table.get_add_actions(flatten=True))
        # of text in folder names a path is encoded, a URI is not: the name of the file is the key
        name = pl.col("path").str.split("/").list.last().alias("name")
        uris = pl.Series("uri", self._table.file_uris(), dtype=pl.String)
        names = pl.DataFrame({"uri": uris}).with_columns(
            name=pl.col("uri").str.split("/").list.last()
        )
        kept = [
            pl.col(column).dt.replace_time_zone(None).dt.cast_time_unit("us")
            if isinstance(kind, pl.Datetime)
            else pl.col(column)
            for column, kind in found.schema.items()
            if column.startswith(("min.", "max.", "partition."))
        ]
        return found.select(name, *kept).join(names, on="name")


def _compared(column: pl.Expr, operator: str, value: object) -> pl.Expr:
    given = pl.lit(value)
    return {">=": column >= given, "<=": column <= given, "<": column < given}[operator]
