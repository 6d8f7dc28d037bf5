"""Limits of rules, written into the SQL that names them as constants.

Those of one rule alone are in its folder (`rules.py`), others in `sql/reference/thresholds.csv`.

A limit that is read by a subquery is a join of the plan. Findings name over a hundred: most of the
time of their planning went into the order of these joins.
"""

import csv
import re
from functools import cache

from goodput_queries import packages
from goodput_queries.catalog import rules
from goodput_queries.errors import RuleError

FILE = "thresholds.csv"
_NAMED = re.compile(r"\bthreshold\('(\w+)'\)")


def with_values(sql: str) -> str:
    """Return SQL with `threshold('name')` replaced by its value; unknown ones raise RuleError."""
    for name in _NAMED.findall(sql):
        if name not in _values():
            raise RuleError(f"there is no threshold {name!r}, in no rule and not in {FILE}.")
    return _NAMED.sub(lambda found: _values()[found[1]], sql)


@cache
def _values() -> dict[str, str]:
    """Return each limit as a literal of type double."""
    return {name: f"{value!r}::double" for name, value, _, _ in rows()}


@cache
def rows() -> tuple[tuple[str, float, str, str], ...]:
    """Return name, value, unit and reason of each limit."""
    files = packages.in_each("sql", "reference", FILE)
    shared = [row for f in files for row in csv.DictReader(f.read_text("utf-8").splitlines())]
    return (
        *((row["name"], float(row["value"]), row["unit"], row["why"]) for row in shared),
        *((t.name, t.value, t.unit, t.why) for rule in rules.rules() for t in rule.thresholds),
    )
