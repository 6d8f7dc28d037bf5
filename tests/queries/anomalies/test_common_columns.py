"""Marts that find several rules have the columns by which one view can join them."""

import polars as pl
import pytest

from goodput_queries.catalog import rules

KINDS = {
    "varchar": pl.String, "timestamp": pl.Datetime("us"), "bigint": pl.Int64, "double": pl.Float64
}  # fmt: skip
COLUMNS = {"rule": "varchar", **rules.REQUIRED, **rules.SUBJECT}


@pytest.mark.parametrize("mart", rules.families())
def test_each_has_rule_subject_time_cost_and_evidence(evidence, mart):
    found = evidence.store.read(f"select * from marts.{mart}").schema

    assert {name: found.get(name) for name in COLUMNS} == {
        name: KINDS[kind] for name, kind in COLUMNS.items()
    }
