"""What each column of a view or table means, and its unit.

The header of its file says it; of a name that means the same everywhere, `columns.csv` does, which
also has the units that names do not end with.
"""

import csv
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from goodput_queries import packages
from goodput_queries.catalog.header import names

COMMON: Final = "columns.csv"
# By the end of a column's name; the longest comes first
_UNITS: Final = {
    "_bytes_per_s": "bytes per second",
    "_bytes_per_h": "bytes per hour",
    "_flops_per_s": "FLOP per second",
    "_kwh_per_useful_gpu_h": "kWh per GPU-hour",
    "_per_1000_gpu_h": "per 1,000 GPU-hours",
    "price_per_gpu_h": "money per GPU-hour",
    "_per_allocated_gpu_h": "money per GPU-hour",
    "_per_productive_gpu_h": "money per GPU-hour",
    "price_per_kwh": "money per kWh",
    "price_per_wall_kwh": "money per kWh",
    "_per_useful_gpu_h": "per GPU-hour",
    "_per_gpu_h": "per GPU-hour",
    "_per_gpu_s": "per second of a GPU",
    "g_per_kwh": "g CO2e per kWh",
    "g_per_wall_kwh": "g CO2e per kWh",
    "_per_cost": "per unit of money",
    "cost_per_h": "money per hour",
    "_per_s": "per second",
    "_per_h": "per hour",
    "_per_j": "per joule",
    "_gpu_s": "seconds of a GPU",
    "gpu_ms": "milliseconds of a GPU",
    "_temperature_c": "°C",
    "_bytes": "bytes",
    "_flops": "FLOP",
    "_ratio": "ratio",
    "_share": "ratio",
    "_tokens": "tokens",
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
_MOMENTS: Final = frozenset(
    {
        *("hour_ms", "at_ms", "start_ms", "end_ms", "from_ms", "to_ms", "since_ms", "until_ms"),
        *("first_ms", "last_ms", "ts_ms", "pause_from_ms", "pause_to_ms", "submit_ms"),
    }
)
_OTHERS: Final = re.compile(r"; ([a-z]\w*(?:, [a-z]\w*)*): ")


@cache
def _common() -> dict[str, dict[str, str]]:
    """Return unit and meaning of names that mean the same wherever a file says nothing else."""
    texts = [file.read_text("utf-8") for file in packages.in_each("sql", COMMON)]
    return {row["column"]: row for text in texts for row in csv.DictReader(text.splitlines())}


def meanings(given: Mapping[str, str], columns: Collection[str]) -> dict[str, str]:
    """Return the meaning of each of the columns, as far as it is known.

    given: of a header: by one or several names with commas; a meaning may go on, after a semicolon,
    with the names of other columns.
    """
    known = _common()
    found = {n: known[n]["meaning"] for n in columns if n in known and known[n]["meaning"]}
    for first, text in given.items():
        together, begin = first, 0
        for other in _OTHERS.finditer(text):
            if all(name in columns for name in names(other[1])):
                found |= dict.fromkeys(names(together), text[begin : other.start()])
                together, begin = other[1], other.end()
        found |= dict.fromkeys(names(together), text[begin:])
    return {name: text for name, text in found.items() if name in columns}


def unit_of(column: str, kind: str) -> str | None:
    """Return the unit of a column of a type, None where it has none: a name, a count, a number."""
    if kind.startswith("TIMESTAMP"):
        return "UTC"
    if column in _MOMENTS:
        return "milliseconds since 1970, UTC"
    if column == "cost":
        return _UNITS["_cost"]
    if kind in ("VARCHAR", "BOOLEAN"):
        return None
    if named := _common().get(column, {}).get("unit"):
        return named
    return next((unit for end, unit in _UNITS.items() if column.endswith(end)), None)
