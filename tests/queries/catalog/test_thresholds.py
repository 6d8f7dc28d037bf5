"""Thresholds stand in the SQL of views and stages as constants."""

import polars as pl
import pytest

from goodput_queries.catalog import models, thresholds
from goodput_queries.database import LocalStore


def test_a_named_threshold_is_replaced_by_its_value(empty_database):
    store = LocalStore(empty_database, threads=1)
    try:
        rows = store.read("select name, value from reference.thresholds").rows()
        named = "select " + ", ".join(f"threshold('{name}')" for name, _ in rows)
        written = store.read(thresholds.with_values(named))
    finally:
        store.close()

    assert written.row(0) == tuple(value for _, value in rows)
    assert set(written.dtypes) == {pl.Float64()}


def test_no_view_or_stage_looks_a_threshold_up():
    """Each would be a join of the plan."""
    looking = [m.qualified_name for m in models.build_order() if "threshold('" in m.sql]

    assert looking == []


def test_a_threshold_that_is_not_in_the_list_is_refused():
    with pytest.raises(KeyError, match="no_such_limit"):
        thresholds.with_values("select threshold('no_such_limit')")
