"""Golden cases: folders with an input, its options and the rows of the raw tables expected of it.

The folder is golden/<source>/<what the case shows>, beside the reader. GOODPUT_REWRITE_GOLDEN=1
rewrites the expected files; review them as code.
"""

import json
import os
import tomllib
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.tables import each

from goodput_ingest.source import ReadOptions
from goodput_queries.catalog.models import base_tables

ROOT = Path(__file__).parents[2]
PLACES = (ROOT / "ingest", ROOT / "queries" / "goodput_serving")
FORMATS = {path.name: path for place in PLACES for path in place.glob("**/golden/*/")}
OF_SOURCES = {  # what tests have to know of each source: `format.toml` beside its cases
    name: of
    for folder in {path.parent for path in FORMATS.values()}
    for name, of in tomllib.loads((folder / "format.toml").read_text("utf-8")).items()
}
TABLES = {f"expected_{name}.csv" for name in base_tables()}  # not of packages that are left out
CASES = [
    case
    for _, path in sorted(FORMATS.items())
    for case in sorted(path.iterdir())
    if {file.name for file in case.glob("exp*.csv")} <= TABLES
]


def golden_path(name):
    """Return a case, or a file of it, by what follows `golden/`."""
    source, _, rest = name.partition("/")
    return FORMATS[source] / rest


def name_of(case):
    """Return the source of a case."""
    return case.parent.name.replace("_", "-")


def of_cases(cases):
    """Try a test with each of these cases, its last parameter."""
    return each({f"{name_of(case)} {case.name}": case for case in cases})


FIRST = {name_of(case): case for case in reversed(CASES)}  # of each source


def input_of(case):
    return next(case.glob("input.*"))


def options_of(case):
    """Return the options with which a case is read."""
    file = case / "options.json"
    given = json.loads(file.read_text()) if file.exists() else {}
    if "zone" in given:
        given["zone"] = ZoneInfo(given["zone"])
    if "observed_at" in given:
        given["observed_at"] = datetime.fromisoformat(given["observed_at"])
    return ReadOptions(**given)


def rows_of(store, tables):
    """Return the rows of these raw tables as expected files, less columns of nulls."""
    found = {}
    for table in sorted(tables):
        rows = store.read(f"select columns(*)::varchar from raw.{table} order by all")
        if not rows.is_empty():
            rows = rows.drop("origin", "load_sequence", strict=False)  # the store's own
            given = rows.select(c.name for c in rows if c.null_count() < rows.height)
            found[f"expected_{table}.csv"] = given.write_csv()
    return found


def expected_of(case, found):
    """Return the expected files of a case; where they are to be rewritten, what was found."""
    if found and os.environ.get("GOODPUT_REWRITE_GOLDEN"):
        for old in case.glob("expected_*.csv"):
            old.unlink()
        for file, text in found.items():
            (case / file).write_text(text)
    return {file.name: file.read_text() for file in case.glob("expected_*.csv")}
