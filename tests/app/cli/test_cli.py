"""The command line: what it says, what it says when it cannot, how it exits."""

import json
import logging

import pytest
from tests.app.command_line import run
from tests.tables import each

from goodput_app.cli import main
from goodput_app.settings import settings

QUESTIONS = ["build", "check", "ledger", "gaps", "throttling", "stragglers", "hangs", "runs"]


def test_help_fits_a_screen():
    lines = run("--help").stdout.splitlines()
    assert len(lines) <= 44
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("...") for line in lines[1:])


def test_a_file_that_was_read_in_by_mistake_is_taken_back(tmp_path):
    db, wrong = str(tmp_path / "fleet.duckdb"), tmp_path / "wrong.jsonl"
    event = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "r", "rank": 0}
    wrong.write_text(json.dumps(event) + "\n")
    run("ingest", "job-events", str(wrong), "--db", db)

    first = run("forget", str(wrong), "--db", db, "--format", "json")
    second = run("forget", str(wrong), "--db", db)
    nowhere = run("forget", str(wrong), "--db", f"{db}.none")

    assert json.loads(first.stdout)[0]["rows"] == 1
    assert json.loads(run("show", "raw.job_events", "--db", db, "--format", "json").stdout) == []
    assert (second.exit_code, nowhere.exit_code) == (1, 1)
    assert "nothing was ingested from" in second.stderr
    assert "there is no such database" in nowhere.stderr
    assert not (tmp_path / "fleet.duckdb.none").exists()


@pytest.mark.usefixtures("all_packages")
def test_every_command_has_help():
    for command in main.COMMANDS:
        result = run(command, "--help")
        assert result.exit_code == 0, command
        assert len(result.stdout.splitlines()) <= 32, command


@pytest.mark.parametrize("command", [*QUESTIONS, "show raw.gpus"])
def test_a_question_to_no_database_makes_none(here, command):
    result = run(*command.split())

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        "goodput.duckdb: there is no such database. Create it with "
        "`goodput ingest auto PATH --db goodput.duckdb`, or look at `goodput demo`.\n"
    )
    assert list(here.iterdir()) == []


def test_the_database_is_named_by_option_then_variable_then_settings(here, monkeypatch):
    def named(*options):
        return run("build", *options).stderr.split(":")[0]

    (here / "goodput.toml").write_text('db = "settings.duckdb"\n')
    assert named() == "settings.duckdb"
    monkeypatch.setenv("GOODPUT_DB", "variable.duckdb")
    assert named() == "variable.duckdb"
    assert named("--db", "option.duckdb") == "option.duckdb"
    said = run("build", "--db", "our fleet.duckdb").stderr
    assert "--db 'our fleet.duckdb'`" in said, "a command to type next quotes its paths"


def test_what_was_read_in_is_summed_up(here):
    (here / "notes.txt").write_text("nothing that we know\n")

    result = run("ingest", "auto", "notes.txt", "--format", "json")

    none = ("files", "rows", "rows_new", "rejects", "repeats", "refused", "failed")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [dict.fromkeys(none, 0) | {"unrecognised": 1}]
    assert result.stderr == (
        "1 file of no known format skipped: notes.txt\n"
        "nothing was ingested: no file could be read, for the reasons above.\n"
    )


def test_a_refused_file_of_a_folder_does_not_keep_the_others_out(here):
    (here / "logs").mkdir()
    (here / "logs" / "a.txt").write_text("nothing that we know\n")
    (here / "logs" / "b.csv").write_text("gpu_model,price_per_gpu_h\nH200,3.5\n")

    folder = run("ingest", "rates", "logs", "--format", "json")
    named = run("ingest", "rates", "logs/a.txt")

    (summary,) = json.loads(folder.stdout)
    assert (folder.exit_code, summary["files"], summary["refused"]) == (1, 1, 1)
    assert folder.stderr.startswith("skipped: logs/a.txt: ")
    assert folder.stderr.endswith("1 file could not be read as rates; all others were ingested.\n")
    assert (named.exit_code, named.stdout) == (1, "")
    assert named.stderr.startswith("logs/a.txt: ")


@pytest.mark.usefixtures("here")
@each(
    (["ingest", "auto", "nope.log"], "nope.log: there is no such file or folder.\n"),
    (["ingest", "nope", "."], "there is no source 'nope'; known: auto, "),
    (["ledger", "--from", "soon"], "'soon' is not a valid time; expected like"),
    (["ledger", "--from", "2026-11-20T14:00"], "'2026-11-20T14:00' has no offset; write"),
    (["ledger", "--from", "now", "--to", "now-1h"], "the window is empty: --from now is not"),
    (["ledger", "--by", "category,banana"], "ledger has no key 'banana'. Known: category, "),
    (["ledger", "--by", "tem"], "no key 'tem'. Did you mean team? Known: category, "),
    (["ledger", "--by", ""], "the ledger has no key ''. Known: category, "),
    (["ingest", "auto", ".", "--timezone", "Mars"], "there is no time zone 'Mars'; expected"),
    (["ingest", "auto", ".", "--timezone", "../etc"], "there is no time zone '../etc'"),
    (["ingest", "auto"], "Missing argument 'PATH...'"),
    (["show", "--format", "xml"], "Invalid value for '--format'"),
    (["nope"], "No such command 'nope'"),
)
def test_what_is_not_there_exits_with_1_and_wrong_usage_with_2(arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == (1 if sentence.startswith(("nope.log", "there is no source")) else 2)
    assert sentence in result.stderr
    assert result.stdout == ""


def test_the_doctor_finds_what_is_there(database):
    rows = json.loads(run("doctor", "--format", "json").stdout)

    found = {row["what"]: row for row in rows}
    assert found["database"]["found"] == f"{database.name}, open in no other process"
    assert found["source test"]["found"].startswith("2 rows, read 20")
    assert found["rejects test"]["status"] == "rejected"
    assert found["rejects test"]["next"].startswith("goodput show raw.rejects; ")
    assert {"sacct", "nvml", "python", "duckdb", "streamlit"} <= found.keys()
    assert "chromium" not in found, "a statement as PDF needs none"
    assert all(row["next"] for row in rows if row["status"] != "ok")


def test_the_doctor_ends_with_1_and_the_problems_first_where_there_are_any(here):
    well = run("doctor", "--format", "json")
    missing = f"/nowhere/{'x' * 100}"
    (here / "goodput.toml").write_text(
        f'[[collect]]\nsource = "job-events"\nfolder = "{missing}"\n'
    )
    settings.cache_clear()
    ill, shown = run("doctor", "--format", "json"), run("doctor").stdout

    assert well.exit_code == 0
    database = [row for row in json.loads(well.stdout) if row["what"] == "database"]
    assert [row["status"] for row in database] == ["missing"]
    assert database[0]["next"] == "goodput ingest auto PATH --db goodput.duckdb"
    assert [path.name for path in here.iterdir()] == ["goodput.toml"], "it makes no database"
    assert ill.exit_code == 1
    assert "1 problem found." in ill.stderr
    statuses = [row["status"] for row in json.loads(ill.stdout)]
    assert statuses == sorted(statuses, key=["problem", "missing", "ok"].index)
    (database,) = [row for row in json.loads(ill.stdout) if row["what"] == "database"]
    assert database["status"] == "missing"
    assert "goodput serve" in database["next"]
    assert "…" not in shown, "a table cuts no sentence"
    assert f"{missing}: there is no such folder to follow." in shown


@pytest.fixture
def loggers():
    """Give the packages' loggers back as they were."""
    yield
    for package in main.PACKAGES:
        logger = logging.getLogger(package)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


@pytest.mark.usefixtures("loggers")
def test_an_unexpected_error_is_a_sentence_and_the_other_files_are_read(tmp_path, breaking):
    breaking(KeyError("rank"))
    line = '{"v": 1, "ts": 1795178033, "event": "step", "step": %d, "run_id": "r", "rank": 0}\n'
    for number, name in enumerate(("a.jsonl", "bad.jsonl", "c.jsonl")):
        (tmp_path / name).write_text(line % number)

    quiet = run("ingest", "auto", str(tmp_path), "--db", str(tmp_path / "a.duckdb"))
    loud = run("--debug", "ingest", "auto", str(tmp_path), "--db", str(tmp_path / "b.duckdb"))

    assert quiet.exit_code == loud.exit_code == 1
    assert "bad.jsonl: unexpected KeyError at goodput_ingest." in quiet.stderr
    assert "1 file failed unexpectedly; all others were ingested." in quiet.stderr
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr
