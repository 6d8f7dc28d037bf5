"""The meaning and the unit of each column of a mart, which any client of the database reads."""

import csv
import re

import pytest

from goodput_queries.catalog import columns, models


@pytest.fixture(scope="module")
def of_marts(new_store):
    """Give view, name, type and comment of each column of the marts."""
    store = new_store()
    with store.cursor() as cursor:
        yield cursor.execute(
            "select table_name, column_name, data_type, comment from duckdb_columns() "
            "where schema_name = 'marts' and database_name = current_database()"
        ).fetchall()
    store.close()


def test_each_column_of_a_mart_has_a_meaning(of_marts):
    assert [(view, name) for view, name, _, comment in of_marts if not comment] == []


def test_each_table_that_a_meaning_names_exists(of_marts):
    named = {name for *_, text in of_marts for name in re.findall(r"\breference\.(\w+)", text)}

    assert named <= models.reference_tables().keys()


def test_each_column_of_a_mart_with_fractions_has_a_unit(of_marts):
    """A whole number without one is a count, or the number of something."""
    fractions = ("DOUBLE", "FLOAT", "DECIMAL", "STRUCT")

    without = [
        (view, name)
        for view, name, kind, _ in of_marts
        if kind.startswith(fractions) and columns.unit_of(name, kind) is None
    ]

    assert without == []


def test_a_name_that_means_the_same_everywhere_is_in_use_and_listed_once(of_marts):
    with columns.COMMON.open(encoding="utf-8") as file:
        listed = [row["column"] for row in csv.DictReader(file)]

    assert listed == sorted(set(listed))
    assert set(listed) <= {name for _, name, *_ in of_marts}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("gpus", "how many"), {"gpus": "how many"}),
        (("first_ms, last_ms", "of it"), {"first_ms": "of it", "last_ms": "of it"}),
        (
            ("gpus", "how many; first_ms, last_ms: of it"),
            {"gpus": "how many", "first_ms": "of it", "last_ms": "of it"},
        ),
        (("gpus", "how many; null: not known"), {"gpus": "how many; null: not known"}),
        (("scope", "window, cluster"), {}),
    ],
    ids=["one", "two", "several", "a value is no column", "no column"],
)
def test_a_line_of_a_header_gives_columns_their_meanings(line, expected, monkeypatch):
    monkeypatch.setattr(columns, "_common", dict)

    found = columns.meanings(dict([line]), ["gpus", "first_ms", "last_ms"])

    assert found == expected


@pytest.mark.parametrize(
    ("column", "kind", "unit"),
    [
        ("gpu_ms", "BIGINT", "milliseconds of a GPU"),
        ("capacity_gpu_s", "DOUBLE", "seconds of a GPU"),
        ("output_tokens_per_gpu_s", "DOUBLE", "per second of a GPU"),
        ("price_per_gpu_h", "DECIMAL(18,6)", "money per GPU-hour"),
        ("tokens_per_j", "DOUBLE", "per joule"), ("start_at", "TIMESTAMP", "UTC"),
        ("start_ms", "BIGINT", "milliseconds since 1970, UTC"), ("params", "DOUBLE", "parameters"),
        ("node", "VARCHAR", None), ("runs", "BIGINT", None),
    ],
)  # fmt: skip
def test_a_name_states_its_unit(column, kind, unit):
    assert columns.unit_of(column, kind) == unit
