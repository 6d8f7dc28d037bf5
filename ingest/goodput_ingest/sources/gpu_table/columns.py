"""What a column of a table of nvidia-smi or dcgmi is: a metric of `gpu_metrics/catalogue.csv`.

`nvidia-smi --query-gpu` has the names and values from which nvidia_gpu_exporter makes its metrics,
by one rule: `power.draw [W]` is `nvidia_smi_power_draw_watts`. Columns of `nvidia-smi dmon` and
short names of `dcgmi dmon` (DCGM 4.6, dcgmlib/src/dcgm_fields.cpp) are in `dmon_columns.csv`.
"""

import re
from functools import cache
from typing import Final, NamedTuple

import polars as pl

from goodput_ingest.gpu_metrics.catalogue import resolve, rows

UNITS: Final = {  # as nvidia-smi prints it: the end of the exporter's name, its units in one
    "": ("", 1.0),
    "%": ("_ratio", 0.01),
    "MiB": ("_bytes", float(2**20)),
    "W": ("_watts", 1.0),
    "MHz": ("_clock_hz", 1e6),
    "us": ("_seconds", 1e-6),
}
ALIASES: Final = {"clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory"}
WORDS: Final = {"Enabled": 1, "Yes": 1, "Active": 1, "Disabled": 0, "No": 0, "Not Active": 0}
WITH_UNIT: Final = re.compile(r"([a-z][\w.]*?)(?: \[([^\]]+)\])?")
IS_HEX: Final = r"^0x[0-9a-fA-F]{1,16}$"
NUMBER: Final = r"^P?([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?: ?(?:%|MiB|W|MHz|us))?$"
# cells for which a GPU has no value; another one in brackets says what is wrong with the GPU
NO_VALUE: Final = (
    r"(?i)^(?:-|n/?a|"
    r"\[(?:n/?a|not (?:supported|found)|insufficient permissions|requested functionality .*)\])?$"
)


class Column(NamedTuple):
    """Under which raw name a column's values go on, and by what they are multiplied before."""

    metric: str
    factor: float


def of_query(header: str) -> Column | None:
    """Return what a column of `--query-gpu` is, `name [unit]`; None where its unit is not known.

    A header that somebody wrote may lack the units: nvidia-smi has one for each name.
    """
    if (found := WITH_UNIT.fullmatch(header)) is None:
        return None
    name = f"nvidia_smi_{ALIASES.get(found[1], found[1]).replace('.', '_')}"
    if found[2] is not None:
        if found[2] not in UNITS:
            return None
        end, factor = UNITS[found[2]]
        return Column(name + end, factor)
    known = (Column(name + end, factor) for end, factor in UNITS.values())
    return next((column for column in known if is_known(column)), Column(name, 1.0))


def of_dmon(header: str) -> Column:
    """Return what a column of `dmon` is; an unknown one is kept under its own name."""
    prefix = "dcgm_" if header.isupper() else "nvidia_smi_"
    name = prefix + re.sub(r"\W", "_", header)
    return _dmon_columns().get(header, Column(name, 1.0))


def is_known(column: Column | None) -> bool:
    """Say whether the catalogue has a column's metric."""
    found = None if column is None else resolve(column.metric)
    return found is not None and found.kind != "unknown"


def values(cells: pl.Series) -> pl.Series:
    """Return the numbers in cells, less their unit; null: no value, NaN: no number."""
    text = pl.col("cell")
    digits = text.str.extract(IS_HEX.replace("0x", "0x(").replace("$", ")$"))
    number = pl.coalesce(
        text.str.extract(NUMBER).cast(pl.Float64, strict=False),
        digits.str.to_integer(base=16, strict=False, dtype=pl.UInt64).cast(pl.Float64),
        text.replace_strict(WORDS, default=None, return_dtype=pl.Float64),
        pl.lit(float("nan")),
    )
    is_value = ~text.str.contains(NO_VALUE)
    return pl.DataFrame({"cell": cells}).select(pl.when(is_value).then(number)).to_series()


@cache
def _dmon_columns() -> dict[str, Column]:
    return {
        row["column"]: Column(row["metric"], float(row["factor"]))
        for row in rows("dmon_columns.csv")
    }
