"""Which layer of the SQL files reads which, and how a view is found by its name."""

import re

import pytest

from goodput_queries.catalog import models
from goodput_queries.catalog.find import find_view
from goodput_queries.errors import QueryError


def test_only_staging_reads_raw():
    """A rename, a unit or a rule of a source is then settled in one view for all readers."""
    read = {
        (model.qualified_name, table)
        for model in models.build_order()
        if model.layer != "staging"
        for table in model.reads
        if table.startswith("raw.")
    }

    assert read == set()


def test_base_tables_have_names_of_their_own():
    """A batch names its table alone."""
    names = [
        model.name for layer in models.BASE_LAYERS for model in models.of_layer(layer).values()
    ]

    assert len(names) == len(set(names))


def test_counts_of_marts_are_64_bit_integers(evidence):
    """DuckDB's count_if is of 128 bits, which readers get as a float."""
    wide = evidence.store.read(
        """select table_name || '.' || column_name from duckdb_columns()
        where schema_name = 'marts' and data_type = 'HUGEINT'"""
    )

    assert wide.to_series().to_list() == []


def test_lengths_and_the_scope_are_named_by_macros():
    """So that a number has a name, and what restricts a view is found in one file."""
    literal = re.compile(
        r"(?<![\w.])(9223372036854775807|3600000|600000|86400000)(?![\w.])|getvariable\('scope_"
    )
    comment = re.compile(r"--[^\n]*")

    found = {
        m.qualified_name for m in models.build_order() if literal.search(comment.sub("", m.sql))
    }

    assert found == set()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("runs", "marts.runs"),
        ("raw.gpus", "raw.gpus"),
        ("gpus", "marts.gpus"),  # a mart comes before the raw table of its name
        ("rejects", "raw.rejects"),
    ],
)
def test_a_name_finds_a_view(name, found):
    assert find_view(name).qualified_name == found


def test_a_name_that_is_nearly_one_says_which():
    with pytest.raises(QueryError, match="Did you mean 'runs'"):
        find_view("rnus")
