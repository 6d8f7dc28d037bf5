"""Compares the result of an incremental build with a full build of the same evidence."""

from polars.testing import assert_frame_equal

from goodput_queries.catalog import models as sql_models


def stored(evidence):
    """Return the rows of every stage that builds keep, by name."""
    models = [m for m in sql_models.build_order() if m.layer != "temp" and m.is_stored]
    return {
        m.qualified_name: evidence.store.read(f"from {m.qualified_name} order by all")
        for m in models
    }


def assert_equals_full_build(evidence):
    evidence.store.build()
    found = stored(evidence)
    evidence.store.build(is_full=True)
    for name, rows in stored(evidence).items():
        if not found[name].equals(rows):
            assert_frame_equal(found[name], rows, check_exact=True)
            raise AssertionError(name)
