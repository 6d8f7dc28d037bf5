"""Limits of rules (`reference/thresholds.csv`), written into the SQL that names them as constants.

A limit that is read by a subquery is a join of the plan. Findings name over a hundred: most of the
time of their planning went into the order of these joins.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

_FILE = files("goodput_queries") / "sql" / "reference" / "thresholds.csv"
_NAMED = re.compile(r"\bthreshold\('(\w+)'\)")


def with_values(sql: str) -> str:
    """Return SQL with `threshold('name')` replaced by its value; raises KeyError for no such one."""
    return _NAMED.sub(lambda found: _values()[found[1]], sql)


@cache
def _values() -> dict[str, str]:
    """Return each limit as a literal of type double."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return {row["name"]: f"{float(row['value'])!r}::double" for row in csv.DictReader(file)}
