"""SQL files: directives of headers, which layer reads which, thresholds as constants, names."""

import contextlib
import re
from pathlib import Path

import polars as pl
import pytest
from tests.tables import each, gives, refuses

from goodput_queries import packages
from goodput_queries.catalog import columns, header, models, thresholds
from goodput_queries.catalog.find import find_view
from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError, RuleError

LITERAL = re.compile(
    r"(?<![\w.])(9223372036854775807|3600000|600000|86400000)(?![\w.])|getvariable\('scope_"
)


@each({
    # a rename, a unit or a rule of a source is then settled in one view for all readers
    "only staging reads raw": lambda m: m.layer != "staging"
    and any(table.startswith("raw.") for table in m.reads),
    # so that a number has a name, and what restricts a view is found in one file
    "lengths and the scope are named by macros": lambda m: LITERAL.search(
        re.sub(r"--[^\n]*", "", m.sql)),
    # each would be a join of the plan
    "no view or stage looks a threshold up": lambda m: "threshold('" in m.sql,
})  # fmt: skip
def test_every_view_and_stage_keeps(is_broken):
    assert [m.qualified_name for m in models.build_order() if is_broken(m)] == []


def test_base_tables_have_names_of_their_own():
    """A batch names its table alone."""
    names = [name for layer in models.BASE_LAYERS for name in models.of_layer(layer)]

    assert len(names) == len(set(names))


test_a_name_finds_a_view = gives(
    lambda name: find_view(name).qualified_name,
    ("runs", "marts.runs"),
    ("raw.gpus", "raw.gpus"),
    ("gpus", "marts.gpus"),  # a mart comes before the raw table of its name
    ("rejects", "raw.rejects"),
)
test_a_name_that_is_nearly_one_says_which = refuses(QueryError, find_view, ("rnus", "mean 'runs'"))


README = Path(__file__).parents[3] / "queries" / "README.md"


def test_a_header_is_its_description_directives_and_columns():
    found = header.header(
        "temp", "readings", "-- Readings of a pass.\n-- grain: series, ts_ms\n"
        "-- materialised: inline; in 4 parts, since a core makes each\n"
        "-- before_ms: of the row before\n--   it, in milliseconds\nselect 1")  # fmt: skip

    assert found.description == "Readings of a pass."
    assert found.directives == {"grain": "series, ts_ms", "materialised": "inline; in 4 parts"}
    assert found.columns == {"before_ms": "of the row before it, in milliseconds"}
    assert found.clause("materialised", "in") == "4 parts"


@pytest.mark.parametrize(("layer", "line", "reason"), [
    ("marts", "times: by ts", "'times' is a directive of raw"),
    ("raw", "materialised: full", "'materialised' is a directive of staging, intermediate"),
    ("intermediate", "materialised: weekly", "'materialised: weekly' has not the form"),
    ("intermediate", "materialised: by hand", "'materialised: by hand' has not the form"),
    ("marts", "access: admins", "'access: admins' has not the form"),
    ("marts", "evaluated: last", "'evaluated: last' has not the form"),
    ("raw", "times: ts", "'times: ts' has not the form"),
    ("marts", "skip_if_empty:", "'skip_if_empty: ' has not the form"),
])  # fmt: skip
def test_a_directive_of_another_layer_or_form_is_named(layer, line, reason):
    with pytest.raises(ValueError, match=rf"{layer}\.runs: {re.escape(reason)}"):
        header.header(layer, "runs", f"-- {line}\nselect 1")


def test_the_table_of_directives_has_each():
    table = re.findall(r"^\| `(\w+)` \|", README.read_text("utf-8"), re.MULTILINE)
    assert table == list(header.FORMS)


def test_a_named_threshold_is_replaced_by_its_value(empty_database):
    with contextlib.closing(LocalStore(empty_database, threads=1)) as store:
        rows = store.read("select name, value from reference.thresholds").rows()
        named = "select " + ", ".join(f"threshold('{name}')" for name, _ in rows)
        written = store.read(thresholds.with_values(named))

    assert written.row(0) == tuple(value for _, value in rows)
    assert set(written.dtypes) == {pl.Float64()}


test_a_threshold_that_is_not_in_the_list_is_refused = refuses(
    RuleError, thresholds.with_values,
    ("select threshold('no_such_limit')", "there is no threshold 'no_such_limit'"))  # fmt: skip


@pytest.fixture(scope="module")
def of_marts(module_store):
    """Give view, name, type and comment of each column of the marts."""
    sql = """select table_name as view, column_name as name, data_type as kind, comment as text
        from duckdb_columns() where schema_name = 'marts' and database_name = current_database()"""
    return module_store().read(sql).to_dicts()


@each({
    "a meaning": lambda c: c["text"],
    "a meaning that names tables that exist": lambda c: (
        {*re.findall(r"\breference\.(\w+)", c["text"] or "")} <= models.reference_tables().keys()),
    # a whole number without one is a count, or the number of something
    "a unit, if it has fractions": lambda c: (
        not c["kind"].startswith(("DOUBLE", "FLOAT", "DECIMAL", "STRUCT"))
        or columns.unit_of(c["name"], c["kind"]) is not None),
    # DuckDB's count_if is of 128 bits, which readers get as a float
    "64 bits, if it is an integer": lambda c: c["kind"] != "HUGEINT",
})  # fmt: skip
def test_each_column_of_a_mart_has(of_marts, is_so):
    assert [column for column in of_marts if not is_so(column)] == []


def test_each_mart_has_a_meaning_a_grain_and_the_columns_that_it_explains(of_marts):
    for mart in models.of_layer("marts").values():
        assert mart.description, mart.name
        assert mart.grain, mart.name
        explained = {name for together in mart.columns for name in header.names(together)}
        there = {column["name"] for column in of_marts if column["view"] == mart.name}
        assert explained <= there, (mart.name, explained - there)


def test_a_name_that_means_the_same_everywhere_is_in_use_and_listed_once(of_marts):
    lists = [pl.read_csv(str(f))["column"] for f in packages.in_each("sql", columns.COMMON)]
    listed = pl.concat(lists)

    assert all(names.is_sorted() for names in lists)
    assert listed.is_unique().all()
    assert set(listed) <= {column["name"] for column in of_marts}


@each({
    "one": ({"gpus": "how many"}, {"gpus": "how many"}),
    "two": ({"first_ms, last_ms": "of it"}, {"first_ms": "of it", "last_ms": "of it"}),
    "several": ({"gpus": "how many; first_ms, last_ms: of it"},
                {"gpus": "how many", "first_ms": "of it", "last_ms": "of it"}),
    "a value is no column": (
        {"gpus": "how many; null: not known"}, {"gpus": "how many; null: not known"}),
    "no column": ({"scope": "window, cluster"}, {}),
})  # fmt: skip
def test_a_line_of_a_header_gives_columns_their_meanings(monkeypatch, line, expected):
    monkeypatch.setattr(columns, "_common", dict)
    assert columns.meanings(line, ["gpus", "first_ms", "last_ms"]) == expected


test_a_name_states_its_unit = gives(
    columns.unit_of,
    ("gpu_ms", "BIGINT", "milliseconds of a GPU"),
    ("capacity_gpu_s", "DOUBLE", "seconds of a GPU"),
    ("output_tokens_per_gpu_s", "DOUBLE", "per second of a GPU"),
    ("price_per_gpu_h", "DECIMAL(18,6)", "money per GPU-hour"),
    ("tokens_per_j", "DOUBLE", "per joule"), ("start_at", "TIMESTAMP", "UTC"),
    ("start_ms", "BIGINT", "milliseconds since 1970, UTC"),
    ("params", "DOUBLE", "parameters"), ("node", "VARCHAR", None), ("runs", "BIGINT", None),
)  # fmt: skip
