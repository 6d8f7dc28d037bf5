"""How the command line prints rows: tables, JSON, CSV, Parquet, files, texts of strangers."""

import io
import json

import polars as pl
import pytest
from rich.text import Text
from tests.app.command_line import failing, run
from tests.tables import each, gives

from goodput_app.cli import output
from goodput_app.cli.output import as_json, encoded
from goodput_billing.render.safe_text import harmless, harmless_text
from goodput_queries.errors import QueryError


def test_views_are_listed_with_their_meaning():
    rows = json.loads(run("show", "--format", "json").stdout)
    (rejects,) = [row for row in rows if row["view"] == "raw.rejects"]
    assert rejects["meaning"] == "Rejected rows with the reason."
    assert all(row["meaning"] for row in rows)


@pytest.mark.usefixtures("database")
def test_rows_of_a_view_are_json_with_exact_types_or_csv():
    rows = json.loads(run("show", "raw.gpus", "--format", "json").stdout)
    lines = run("show", "raw.rejects", "--format", "csv").stdout.splitlines()
    one = run("show", "raw.gpus", "--limit", "1", "--format", "csv").stdout.splitlines()

    assert [row["gpu_uuid"] for row in rows] == ["GPU-1", "GPU-2"]
    assert (rows[0]["memory_bytes"], type(rows[0]["memory_bytes"])) == (151_000_000_000, int)
    assert rows[0]["valid_from_at"] == "2026-11-20T12:00:00Z"
    assert (rows[1]["power_limit_w"], rows[1]["node"]) == (None, "\x1b[31mn2")
    assert lines == ["source,origin,line,reason,content", "test,file,3,14 fields,a|b"]
    assert len(one) == 2


@each(
    (["--out", "gpus.json"], b"[\n{"), (["--out", "gpus.CSV"], b"source,cluster,"),
    (["--out", "gpus.parquet"], b"PAR1"), (["--out", "gpus.txt"], b"source  "),
    (["--out", "gpus.json", "--format", "csv"], b"source,cluster,"),
)  # fmt: skip
def test_the_name_of_the_file_says_the_format(database, options, begins):
    result = run("show", "raw.gpus", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert (database.parent / options[1]).read_bytes().startswith(begins)


@each(
    ("gpus.xlsx", ".xlsx is none of table, json, csv, parquet; say --format."),
    ("nowhere/gpus.txt", "cannot be written (No such file or directory)."),
)
def test_a_file_that_cannot_be_written_is_a_stated_failure(database, out, said):
    assert failing("show", "raw.gpus", "--out", out) == f"{out}: {said}\n"
    assert not (database.parent / out).exists()


@pytest.mark.usefixtures("database")
@each(
    ("raw.gpu", "there is no view 'raw.gpu'. Did you mean 'raw.gpus'? `goodput show` lists"),
    ("gpus; drop table raw.gpus", "there is no view 'gpus; drop table raw.gpus'."),
    ("pg_catalog.pg_tables", "there is no view 'pg_catalog.pg_tables'."),
    ("raw.catalog", "there is no view 'raw.catalog'."),
)
def test_only_our_own_views_are_shown(name, sentence):
    assert failing("show", name).startswith(sentence)


@pytest.mark.usefixtures("database")
def test_a_long_table_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(output, "TABLE_ROWS", 1)

    result = run("show", "raw.gpus")

    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "1 of 2 rows; --format json has them all.\n"


test_a_cell_reads_as_its_column_means = gives(
    output.cell,
    ("gpu_ms", 1326268, "1,326,268"), ("job_id", 1326268, "1326268"), ("share", 0.1234, "12.3 %"),
    ("goodput_ratio", 1.0, "100.0 %"), ("cost", 1234.5, "1,234.50"),
    ("gpu_s", 1326.2684, "1,326.268"), ("power_w", 699.123, "699.1"), ("is_open", True, "yes"),
    ("reason", None, "-"), ("reason", "a\nb", "a\\nb"), ("reason", "x" * 100, "x" * 79 + "…"),
    ("kinds", ["a", 1], '["a", 1]'), ("power_w", float("nan"), "-"),
)  # fmt: skip


def test_parquet_is_not_for_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(QueryError, match="name a file with --out"):
        output.write(pl.DataFrame(), "parquet")


def on_a_terminal(frame, width, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    output.write(frame, "table")
    return [line.rstrip() for line in Text.from_ansi(screen.getvalue()).plain.splitlines()]


WIDE = pl.DataFrame({
    "run_key": ["lab/a-long-name"], "gpus": [4], "evidence": ["steps " * 12], "user_name": [""],
    "run_id": ["a-long-name"], "kept_step_ms": [1_600_000], "goodput_of_held_ratio": [0.18],
    "cost": [None],
})  # fmt: skip


def test_a_table_leaves_columns_out_where_a_terminal_is_narrow(monkeypatch):
    assert on_a_terminal(WIDE, 80, monkeypatch) == [
        "gpus  evidence                  run_id       kept_step_ms  goodput_of_held_ratio",
        "   4  steps steps steps steps…  a-long-name     1,600,000                 18.0 %",
        "3 of 8 columns left out (empty, or no room); all: --format csv",
    ]


def test_a_table_is_whole_where_a_terminal_is_wide_and_has_its_columns_without_rows(monkeypatch):
    header, row = on_a_terminal(WIDE, 200, monkeypatch)

    assert header.split() == WIDE.columns
    assert "steps " * 11 + "steps" in row
    header = on_a_terminal(WIDE.clear(), 40, monkeypatch)[0]
    assert header.split() == ["run_id", "goodput_of_held_ratio", "cost"]


def test_in_csv_nested_values_are_json_and_json_keeps_texts_that_a_terminal_obeys():
    frame = pl.DataFrame({
        "kinds": [["a", "b"], None], "box": [{"x": 1}, {"x": None}],
        "n": [-1, None], "x": [-0.5, None], "t": ["=1", None], "l": [["=1"], None],
    })  # fmt: skip
    text = "=1 \x9b2J \x1b[2J \u202e"
    in_json = as_json(pl.DataFrame({"t": [text]}))

    assert encoded(frame, "csv").decode().splitlines() == [
        "kinds,box,n,x,t,l",
        '"[""a"", ""b""]","{""x"": 1}",-1,-0.5,\'=1,"[""=1""]"',
        ',"{""x"": null}",,,,',
    ]
    assert in_json.isascii()
    assert pl.read_json(in_json.encode()).item() == text


CELLS = {
    "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
    "\r=1": "'\r=1", "\n=1": "'\n=1", **{f"{sign}1": f"'{sign}1" for sign in "\uff1d\uff0b\uff20"},
    "a=1": "a=1", "": "", "\u202egnp.exe": "\\u202egnp.exe", "\u2066=1": "\\u2066=1",
    "\u202e=1": "\\u202e=1",
}  # fmt: skip


@pytest.mark.parametrize(("text", "cell"), CELLS.items())
def test_a_text_that_a_spreadsheet_would_run_or_turn_is_text(text, cell):
    found = pl.DataFrame({"a": [text]}).select(harmless(pl.col("a"))).item()
    assert found == harmless_text(text) == cell
