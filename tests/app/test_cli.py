"""The command line: what it prints, what it says when it cannot, how it exits."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner, Result

from goodput_app import cli, output
from goodput_queries.batch import Batch, Reject
from goodput_queries.errors import QueryError
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    *("demo", "ingest", "build", "check", "ledger", "show"),
    *("gaps", "throttling", "stragglers", "hangs", "runs", "report", "what-if"),
    *("serve", "collect", "doctor", "forget", "prune"),
]
QUESTIONS = ["build", "check", "ledger", "gaps", "throttling", "stragglers", "hangs", "runs"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database(here: Path, empty_database: Path) -> Path:
    """Give `goodput.duckdb` with two GPUs and a row that was set aside."""
    rows = pl.DataFrame(
        {
            "source": "test",
            "cluster": "lab",
            "gpu_uuid": ["GPU-1", "GPU-2"],
            "node": ["n1", "\x1b[31mn2"],
            "memory_bytes": [151_000_000_000, None],
            "power_limit_w": [700.0, float("nan")],
            "valid_from_at": [datetime(2026, 11, 20, 12), None],  # noqa: DTZ001 -- naive UTC
        }
    )
    path = here / "goodput.duckdb"
    shutil.copyfile(empty_database, path)
    with contextlib.closing(LocalStore(path)) as store:
        store.load(Batch("gpus", rows, "test", "file", "1", [Reject(3, "14 fields", "a|b")]))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def test_help_fits_a_screen() -> None:
    lines = run("--help").stdout.splitlines()

    assert len(lines) <= 28  # of a small window
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("...") for line in lines[1:])


def test_a_file_that_was_read_in_by_mistake_is_taken_back(tmp_path: Path) -> None:
    db, wrong = str(tmp_path / "fleet.duckdb"), tmp_path / "wrong.jsonl"
    event = {"v": 1, "ts": 1_800_000_000, "event": "job.start", "run_id": "r", "rank": 0}
    wrong.write_text(json.dumps(event) + "\n")
    run("ingest", "job-events", str(wrong), "--db", db)

    first = run("forget", str(wrong), "--db", db, "--format", "json")
    second = run("forget", str(wrong), "--db", db)
    nowhere = run("forget", str(wrong), "--db", f"{db}.none")

    assert json.loads(first.stdout)[0]["rows"] == 1
    assert json.loads(run("show", "raw.job_events", "--db", db, "--format", "json").stdout) == []
    assert (second.exit_code, nowhere.exit_code) == (1, 1)
    assert "nothing was read in from" in second.stderr
    assert "there is no such database" in nowhere.stderr
    assert not (tmp_path / "fleet.duckdb.none").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = run(command, "--help")

    assert result.exit_code == 0
    assert cli.main.commands[command].help
    assert len(result.stdout.splitlines()) <= 32


def test_there_are_no_other_commands() -> None:
    assert list(cli.main.commands) == COMMANDS


def test_the_version_is_told() -> None:
    assert run("--version").stdout == "main 0.1.0\n"


@pytest.mark.parametrize("command", [*QUESTIONS, "show raw.gpus"])
def test_a_question_to_no_database_makes_none(here: Path, command: str) -> None:
    result = run(*command.split())

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        "goodput.duckdb: there is no such database. Make it with "
        "`goodput ingest auto PATH --db goodput.duckdb`, or look at `goodput demo`.\n"
    )
    assert list(here.iterdir()) == []


def test_the_database_is_named_by_option_then_variable_then_settings(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(*options: str) -> str:
        return run("build", *options).stderr.split(":")[0]

    (here / "goodput.toml").write_text('db = "settings.duckdb"\n')
    assert named() == "settings.duckdb"
    monkeypatch.setenv("GOODPUT_DB", "variable.duckdb")
    assert named() == "variable.duckdb"
    assert named("--db", "option.duckdb") == "option.duckdb"


def test_wrong_settings_are_a_stated_failure(here: Path) -> None:
    (here / "goodput.toml").write_text("colour = 1\n")

    result = run("build")

    assert (result.exit_code, result.stderr) == (
        1,
        "goodput.toml: there is no setting 'colour'; "
        "known: db, ingest, serve, ui, retention, statement, report, collect.\n",
    )


def test_what_was_read_in_is_summed_up(here: Path) -> None:
    (here / "notes.txt").write_text("nothing that we know\n")

    result = run("ingest", "auto", "notes.txt", "--format", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {
            "files": 0,
            "rows": 0,
            "rows_new": 0,
            "rejects": 0,
            "repeats": 0,
            "refused": 0,
            "unrecognised": 1,
        }
    ]
    assert result.stderr == (
        "1 file of no known format left out: notes.txt\n"
        "nothing was read in: no file could be read as said above.\n"
    )


def test_a_refused_file_of_a_folder_does_not_keep_the_others_out(here: Path) -> None:
    (here / "logs").mkdir()
    (here / "logs" / "a.txt").write_text("nothing that we know\n")
    (here / "logs" / "b.csv").write_text("gpu_model,usd_per_gpu_h\nH200,3.5\n")

    folder = run("ingest", "rates", "logs", "--format", "json")
    named = run("ingest", "rates", "logs/a.txt")

    (summary,) = json.loads(folder.stdout)
    assert (folder.exit_code, summary["files"], summary["refused"]) == (1, 1, 1)
    assert folder.stderr.startswith("left out: logs/a.txt: ")
    assert folder.stderr.endswith("1 files could not be read as rates; the others were.\n")
    assert (named.exit_code, named.stdout) == (1, "")
    assert named.stderr.startswith("logs/a.txt: ")


@pytest.mark.usefixtures("here")
def test_a_file_that_is_not_there_is_a_stated_failure() -> None:
    result = run("ingest", "auto", "nope.log")

    assert result.exit_code == 1
    assert result.stderr == "nope.log: there is no such file or folder.\n"


@pytest.mark.usefixtures("here")
def test_an_unknown_source_is_a_stated_failure() -> None:
    result = run("ingest", "nope", ".")

    assert result.exit_code == 1
    assert result.stderr.startswith("there is no source 'nope'; known: auto, ")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ledger", "--from", "soon"], "'soon' is not a moment; expected like"),
        (["ledger", "--from", "2026-11-20T14:00"], "'2026-11-20T14:00' has no offset; write"),
        (["ledger", "--from", "now", "--to", "now-1h"], "the window is empty: --from now is not"),
        (["ingest", "auto", ".", "--timezone", "Mars"], "there is no time zone 'Mars'; expected"),
        (["ingest", "auto", ".", "--timezone", "../etc"], "there is no time zone '../etc'"),
        (["ingest", "auto"], "Missing argument 'PATH...'"),
        (["show", "--format", "xml"], "Invalid value for '--format'"),
        (["nope"], "No such command 'nope'"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""


def test_views_are_listed_with_their_meaning() -> None:
    rows = json.loads(run("show", "--format", "json").stdout)

    (rejects,) = [row for row in rows if row["view"] == "raw.rejects"]
    assert rejects["meaning"] == "A row that was set aside, with the reason; nothing is lost."
    assert all(row["meaning"] for row in rows)


@pytest.mark.usefixtures("database")
def test_rows_of_a_view_are_json_with_exact_types() -> None:
    rows = json.loads(run("show", "gpus", "--format", "json").stdout)

    assert [row["gpu_uuid"] for row in rows] == ["GPU-1", "GPU-2"]
    assert rows[0]["memory_bytes"] == 151_000_000_000
    assert isinstance(rows[0]["memory_bytes"], int)
    assert rows[0]["valid_from_at"] == "2026-11-20T12:00:00Z"
    assert rows[1]["power_limit_w"] is None
    assert rows[1]["node"] == "\x1b[31mn2"


@pytest.mark.usefixtures("database")
def test_rows_of_a_view_are_csv() -> None:
    lines = run("show", "raw.rejects", "--format", "csv").stdout.splitlines()

    assert lines == ["source,origin,line,reason,content", "test,file,3,14 fields,a|b"]


@pytest.mark.usefixtures("database")
def test_rows_of_a_view_are_parquet() -> None:
    result = run("show", "raw.gpus", "--format", "parquet")

    assert pl.read_parquet(io.BytesIO(result.stdout_bytes)).height == 2


@pytest.mark.usefixtures("database")
def test_a_table_moves_no_cursor() -> None:
    text = run("show", "raw.gpus").stdout

    assert "\\x1b[31mn2" in text
    assert "\x1b" not in text
    assert "151,000,000,000" in text
    assert "2026-11-20 12:00:00Z" in text


def test_results_go_to_a_file_where_one_is_named(database: Path) -> None:
    result = run("show", "raw.gpus", "--format", "json", "--out", "gpus.json")

    assert (result.exit_code, result.stdout) == (0, "")
    assert len(json.loads((database.parent / "gpus.json").read_text())) == 2


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (["--out", "gpus.json"], b"[\n{"),
        (["--out", "gpus.CSV"], b"source,cluster,"),
        (["--out", "gpus.parquet"], b"PAR1"),
        (["--out", "gpus.txt"], b"source  "),
        (["--out", "gpus.json", "--format", "csv"], b"source,cluster,"),
    ],
)
def test_the_name_of_the_file_says_the_format(
    database: Path, options: list[str], begins: bytes
) -> None:
    assert run("show", "raw.gpus", *options).exit_code == 0
    assert (database.parent / options[1]).read_bytes().startswith(begins)


@pytest.mark.usefixtures("here")
def test_a_command_to_type_next_quotes_its_paths() -> None:
    assert "--db 'our fleet.duckdb'`" in run("build", "--db", "our fleet.duckdb").stderr


@pytest.mark.usefixtures("database")
def test_a_file_that_cannot_be_written_is_a_stated_failure() -> None:
    result = run("show", "raw.gpus", "--out", "nowhere/gpus.txt")

    assert result.exit_code == 1
    assert result.stderr == "nowhere/gpus.txt: cannot be written (No such file or directory).\n"


@pytest.mark.usefixtures("database")
def test_a_limit_limits() -> None:
    assert len(json.loads(run("show", "gpus", "--limit", "1", "--format", "json").stdout)) == 1


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("raw.gpu", "there is no view 'raw.gpu'. Did you mean 'raw.gpus'? `goodput show` lists"),
        ("gpus; drop table raw.gpus", "there is no view 'gpus; drop table raw.gpus'."),
        ("pg_catalog.pg_tables", "there is no view 'pg_catalog.pg_tables'."),
        ("raw.catalog", "there is no view 'raw.catalog'."),
    ],
)
def test_only_our_own_views_are_shown(name: str, sentence: str) -> None:
    result = run("show", name)

    assert result.exit_code == 1
    assert result.stderr.startswith(sentence)


@pytest.mark.usefixtures("database")
def test_a_long_table_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "TABLE_ROWS", 1)

    result = run("show", "raw.gpus")

    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "1 of 2 rows; --format json has them all.\n"


def test_the_doctor_finds_what_is_there(database: Path) -> None:
    rows = json.loads(run("doctor", "--format", "json").stdout)

    found = {row["what"]: row for row in rows}
    assert found["database"]["found"] == f"{database.name}, held by nobody else"
    assert found["source test"]["found"].startswith("2 rows, read 20")
    assert found["rejects test"]["next"] == "goodput show raw.rejects"
    assert {"sacct", "nvml", "chromium", "python", "duckdb", "streamlit"} <= found.keys()
    assert all(row["next"] for row in rows if row["status"] != "ok")


@pytest.mark.usefixtures("here")
def test_the_doctor_makes_no_database() -> None:
    rows = json.loads(run("doctor", "--format", "json").stdout)

    (row,) = [row for row in rows if row["what"] == "database"]
    assert row["status"] == "missing"
    assert row["next"] == "goodput ingest auto PATH --db goodput.duckdb"


@pytest.fixture
def measured(database: Path) -> Path:
    """Give a database in which one GPU was read every 30 s for ten minutes, and nobody held it."""
    start = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
    readings = pl.DataFrame(
        {
            "source": "test",
            "gpu_uuid": "GPU-1",
            "gpu_instance": "",
            "ts": [start + timedelta(seconds=30 * n) for n in range(21)],
            "engine_active_ratio": 0.0,
        }
    )
    with contextlib.closing(LocalStore(database)) as store:
        store.load(Batch("gpu_samples", readings, "test", "file", "2"))
    return database


@pytest.mark.usefixtures("measured")
def test_the_ledger_is_built_first_and_balances() -> None:
    result = run("ledger", "--cluster", "lab")
    rows = json.loads(run("ledger", "--by", "node,category", "--format", "json").stdout)

    assert result.exit_code == 0
    assert "GPU-s: it balances. Goodput 0.0 %, between 0.0 % and 0.0 %.\n" in result.stderr
    assert {row["node"] for row in rows} >= {"n1"}
    assert all(isinstance(row["gpu_ms"], int) for row in rows)
    assert all(row["gpu_s"] == row["gpu_ms"] / 1000 for row in rows)
    assert sum(row["share_ratio"] for row in rows) == pytest.approx(1)


@pytest.mark.usefixtures("measured")
def test_the_ledger_of_a_window_is_as_long_as_the_window() -> None:
    window = ["--from", "2026-11-20T12:02Z", "--to", "2026-11-20T13:05+01:00", "--node", "n1"]
    rows = json.loads(run("ledger", *window, "--by", "gpu", "--format", "json").stdout)

    assert [(row["gpu"], row["gpu_ms"]) for row in rows] == [("GPU-1", 180_000)]


@pytest.mark.usefixtures("measured")
def test_a_scope_that_holds_nothing_is_said_so() -> None:
    result = run("ledger", "--team", "nobody")

    assert result.exit_code == 0
    assert result.stderr == (
        "Ledger 0.000 GPU-s: nothing in this scope "
        "(data: 2026-11-20 12:00:00Z to 2026-11-20 12:10:00Z).\n"
    )


@pytest.mark.usefixtures("measured")
def test_a_window_that_holds_nothing_is_told_where_the_data_is() -> None:
    result = run("gaps", "--from", "2020-01-01", "--to", "2020-01-02", "--format", "json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert result.stderr == (
        "Nothing in this window (data: 2026-11-20 12:00:00Z to 2026-11-20 12:10:00Z).\n"
    )


@pytest.mark.usefixtures("measured")
def test_an_unknown_key_of_the_ledger_is_a_stated_failure() -> None:
    result = run("ledger", "--by", "category,colour")

    assert result.exit_code == 1
    assert result.stderr.startswith("the ledger has no key 'colour'; known: category, ")


@pytest.mark.usefixtures("measured")
def test_checks_that_hold_exit_with_0() -> None:
    result = run("check", "--format", "json")

    assert result.exit_code == 0, result.stderr
    assert all(row["violations"] == 0 for row in json.loads(result.stdout))


def test_a_check_that_does_not_hold_exits_with_1_after_its_rows(measured: Path) -> None:
    run("build")
    with contextlib.closing(LocalStore(measured)) as store, store.writing() as cursor:
        cursor.execute("update marts.ledger_hourly set gpu_ms = gpu_ms + 1")

    result = run("check", "--format", "json")

    assert result.exit_code == 1
    assert any(row["violations"] for row in json.loads(result.stdout))
    assert "checks found rows: `goodput show checks.CHECK --db goodput.duckdb`." in result.stderr


@pytest.mark.usefixtures("measured")
def test_a_build_says_what_it_built_and_does_it_once() -> None:
    first = json.loads(run("build", "--format", "json").stdout)

    assert {"stage", "rows", "seconds"} == set(first[0])
    assert json.loads(run("build", "--format", "json").stdout) == []
    assert len(json.loads(run("build", "--full", "--format", "json").stdout)) == len(first)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("command", ["gaps", "throttling", "stragglers", "runs"])
def test_an_answer_is_a_list_of_rows(command: str) -> None:
    result = run(command, "--format", "json")

    assert result.exit_code == 0, result.stderr
    assert isinstance(json.loads(result.stdout), list)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("gpu_ms", 1326268, "1,326,268"),
        ("job_id", 1326268, "1326268"),
        ("share", 0.1234, "12.3 %"),
        ("goodput_ratio", 1.0, "100.0 %"),
        ("usd", 1234.5, "1,234.50"),
        ("gpu_s", 1326.2684, "1,326.268"),
        ("power_w", 699.123, "699.1"),
        ("is_open", True, "yes"),
        ("reason", None, "-"),
        ("reason", "a\nb", "a\\nb"),
        ("reason", "x" * 100, "x" * 79 + "…"),
        ("kinds", ["a", 1], '["a", 1]'),
        ("power_w", float("nan"), "-"),
    ],
)
def test_a_cell_reads_as_its_column_means(column: str, value: object, shown: str) -> None:
    assert output.cell(column, value) == shown


def test_parquet_is_not_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    with pytest.raises(QueryError, match="name a file with --out"):
        output.write(pl.DataFrame(), "parquet")


def test_nested_values_are_json_in_csv() -> None:
    frame = pl.DataFrame({"kinds": [["a", "b"], None], "box": [{"x": 1}, {"x": None}]})

    assert output.encoded(frame, "csv").decode().splitlines() == [
        "kinds,box",
        '"[""a"", ""b""]","{""x"": 1}"',
        ',"{""x"": null}"',
    ]
