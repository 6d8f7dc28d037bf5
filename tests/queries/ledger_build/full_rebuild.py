"""Compares the result of an incremental build with a full build of the same evidence."""

import polars as pl
from polars.testing import assert_frame_equal

from goodput_queries.catalog import models as sql_models


def stored(evidence):
    """Return the rows of every stage that builds keep, by name; all that have none are alike."""
    stages = [m for m in sql_models.build_order() if m.layer != "temp" and m.is_stored]
    names = [stage.qualified_name for stage in stages]
    first_rows = (f"(select '{name}' as stage from {name} limit 1)" for name in names)
    with_rows = set(evidence.store.read(" union all ".join(first_rows))["stage"])
    return {
        name: evidence.store.read(f"from {name} order by all")
        if name in with_rows
        else pl.DataFrame()
        for name in names
    }


def assert_equals_full_build(evidence):
    evidence.store.build()
    found = stored(evidence)
    evidence.store.build(is_full=True)
    for name, rows in stored(evidence).items():
        if not found[name].equals(rows):
            assert_frame_equal(found[name], rows, check_exact=True)
            raise AssertionError(name)
