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
    """Return SQL with `threshold('name')` replaced by its value; unknown ones raise KeyError."""
    return _NAMED.sub(lambda found: _values()[found[1]], sql)


@cache
def _values() -> dict[str, str]:
    """Return each limit as a literal of type double."""
    rows = csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines())
    return {row["name"]: f"{float(row['value'])!r}::double" for row in rows}
