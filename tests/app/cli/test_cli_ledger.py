"""Questions on the command line: the ledger, its checks, its builds, ranked answers."""

import contextlib
import json
import shutil
from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.command_line import run
from tests.tables import each

from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch
from goodput_queries.ledger_build import materialise


def read_from(source, **value):
    """Return a reading of one GPU every 30 s for ten minutes."""
    start = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
    at = [start + timedelta(seconds=30 * n) for n in range(21)]
    return pl.DataFrame(
        {"source": source, "gpu_uuid": "GPU-1", "gpu_instance": "", "ts": at, **value}
    )


@pytest.fixture(scope="module")
def readings(filled, two_gpus):
    """Give a database in which one GPU was read every 30 s for ten minutes, and nobody held it."""
    batch = Batch("gpu_samples", read_from("test", engine_active_ratio=0.0), "test", "file", "2")
    return filled("readings", lambda store: store.load(batch), copy_of=two_gpus)


@pytest.fixture
def measured(here, filled, readings):
    """Work where the ledger of the readings is."""
    ledger = filled("ledger-of-readings", LocalStore.build, copy_of=readings)
    return shutil.copyfile(ledger, here / "goodput.duckdb")


@pytest.fixture
def empty(here, empty_database):
    """Work where a database without rows is."""
    return shutil.copyfile(empty_database, here / "goodput.duckdb")


@pytest.mark.usefixtures("empty")
def test_an_empty_ledger_leads_to_data_quality():
    assert "no GPU of a node is known; `goodput show data_quality` says" in run("ledger").stderr


def test_a_ledger_of_an_inventory_alone_names_the_listed_gpus(here):
    rows = "node,gpu_index,gpu_uuid,gpu_model,valid_from\nn1,0,GPU-a,h100,\nn1,1,GPU-b,h100,\n"
    (here / "inventory.csv").write_text(rows)

    run("ingest", "inventory", "inventory.csv", "--cluster", "lab")
    result = run("ledger")

    assert "2 GPUs listed, and no source says of any time what they did; add" in result.stderr
    assert "no GPU of a node is known" not in result.stderr


def test_a_ledger_of_readings_states_how_exact_it_is(here):
    values = [0.9] * 10 + [0] * 20 + [0.9] * 10
    labels = '{gpu="0",UUID="GPU-a",Hostname="n1",pod="p",namespace="n"}'
    lines = [
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{labels} {value} {1795183200000 + 60_000 * minute}\n"
        for minute, value in enumerate(values)
    ]
    (here / "scrape.prom").write_text("".join(lines))

    run("ingest", "dcgm", "scrape.prom", "--cluster", "lab")

    stated = (
        "Readings at least every 1m place 2 changes between active and idle to ± 2.0 GPU-min; "
        "idle time under 3m may count as active."
    )
    assert stated in run("ledger").stderr
    assert "Readings at least" not in run("ledger", "--team", "n").stderr


def test_a_build_says_what_it_built_and_does_it_once_and_the_ledger_balances(here, readings):
    shutil.copyfile(readings, here / "goodput.duckdb")
    first, again, whole = (
        json.loads(run("build", *options, "--format", "json").stdout)
        for options in ((), (), ("--full",))
    )
    result = run("ledger", "--cluster", "lab")
    rows = json.loads(run("ledger", "--by", "node,category", "--format", "json").stdout)

    assert {"stage", "rows", "seconds"} == set(first[0])
    assert (again, len(whole)) == ([], len(first))
    assert result.exit_code == 0
    assert "GPU-s: it balances. GPU activity (% of observed time): 0.0 %; " in result.stderr
    assert {row["node"] for row in rows} >= {"n1"}
    assert all(isinstance(row["gpu_ms"], int) for row in rows)
    assert all(row["gpu_s"] == row["gpu_ms"] / 1000 for row in rows)
    assert sum(row["share_ratio"] for row in rows) == pytest.approx(1)


@pytest.mark.usefixtures("measured")
def test_the_ledger_of_a_window_is_as_long_as_the_window():
    window = ["--from", "2026-11-20T12:02Z", "--to", "2026-11-20T13:05+01:00", "--node", "n1"]
    rows = json.loads(run("ledger", *window, "--by", "gpu", "--format", "json").stdout)

    assert [(row["gpu"], row["gpu_ms"]) for row in rows] == [("GPU-1", 180_000)]


@pytest.mark.usefixtures("measured")
@each(
    (["ledger"], None, "Ledger 0.000 GPU-s: no rows in this scope"),
    (["gaps", "--format", "json"], "[]", "No rows in this time range"),
)
def test_an_empty_window_is_reported_with_the_range_of_the_data(command, printed, said):
    result = run(*command, "--from", "2020-01-01", "--to", "2020-01-02")

    assert result.exit_code == 0
    assert printed in (None, result.stdout.strip())
    assert result.stderr == f"{said} (data: 2026-11-20 12:00:00Z to 2026-11-20 12:10:00Z).\n"


@pytest.mark.usefixtures("measured")
@each(
    ("gaps", ["--cluster", "lba"], "The ledger knows no cluster lba; did you mean lab?\n"),
    ("ledger", ["--node", "x9"], "The ledger knows no node x9.\n"),
    ("runs", ["--run", "7", "--from", "2026-11-20"], "The ledger knows no run 7.\n"),
    ("show marts.runs", ["--run", "7"], "The ledger knows no run 7.\n"),
    ("what-if checkpoints", ["--run", "7"], "The ledger knows no run 7.\n"),
)
def test_a_filter_that_names_nothing_is_an_error(command, options, said):
    result = run(*command.split(), *options, "--format", "json")

    assert (result.exit_code, result.stdout, result.stderr) == (1, "", said)


def test_a_check_that_does_not_hold_exits_with_1_after_its_rows(measured):
    with contextlib.closing(LocalStore(measured)) as store, store.writing() as cursor:
        cursor.execute("update marts.ledger_hourly_by_node set gpu_ms = gpu_ms + 1")

    result = run("check", "--format", "json")

    assert result.exit_code == 1
    assert any(row["violations"] for row in json.loads(result.stdout))
    assert "checks found rows: `goodput show checks.CHECK --db goodput.duckdb`." in result.stderr


@pytest.mark.usefixtures("measured")
@each(
    ("throttling", "neither clock event reasons nor throttle counters"),
    ("stragglers", ""),
    ("hangs", "Flight Recorder dumps, answers of NCCL RAS or lines"),
)
def test_an_answer_is_a_list_of_rows_and_one_that_nobody_reports_says_so(command, said):
    result = run(command, "--format", "json")

    assert result.exit_code == 0, result.stderr
    assert isinstance(json.loads(result.stdout), list)
    assert said in result.stderr


def test_episodes_at_the_power_cap_are_counted_and_listed_with_all(measured):
    rows = read_from("capped", clocks_event_reasons=4)
    with contextlib.closing(LocalStore(measured)) as store:
        store.load(Batch("gpu_samples", rows, "capped", "file", "3"))

    losses = run("throttling", "--format", "json")
    everything = run("throttling", "--all", "--format", "json")

    assert json.loads(losses.stdout) == []
    said = f"{len(json.loads(everything.stdout))} episodes at the power cap, none a loss: "
    assert losses.stderr == f"{said}--all lists them.\n"


@pytest.mark.usefixtures("empty")
@each("gaps", "runs", "hangs", "findings")
def test_a_question_to_an_empty_database_says_that_nothing_was_ingested(command):
    assert run(command).stderr == (
        "Nothing was ingested: `goodput ingest auto PATH --db goodput.duckdb`.\n"
    )


def test_a_refused_build_fails_and_the_ledger_of_before_answers(measured, monkeypatch):
    with contextlib.closing(LocalStore(measured)) as store:
        store.load(
            Batch("gpu_samples", read_from("more", engine_active_ratio=1.0), "more", "f", "4")
        )
    right = materialise.replace_hours

    def wrong(cursor, models, *args, **kwargs):
        done = right(cursor, models, *args, **kwargs)
        if models[0].qualified_name == "intermediate.int_ledger_segments":
            cursor.execute("update intermediate.int_ledger_segments set gpu_ms = gpu_ms + 1")
        return done

    monkeypatch.setattr(materialise, "replace_hours", wrong)
    built, asked = run("build"), run("ledger", "--format", "csv")

    assert (built.exit_code, asked.exit_code) == (1, 0)
    assert "the checks of this one failed" in built.output
    assert ",600000," in asked.output
    assert "the checks of this one failed" in asked.output
