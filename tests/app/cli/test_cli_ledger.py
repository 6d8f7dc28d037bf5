"""Questions on the command line: the ledger, its builds, filters by names, `goodput what-if`."""

import contextlib
import json
import shutil
from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.command_line import failing, run
from tests.app.cost_page import SACCT, cost_file
from tests.tables import each

from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError
from goodput_queries.evidence.batch import Batch
from goodput_queries.ledger_build import materialise
from goodput_queries.names import resolved
from goodput_queries.scope import Scope


def read_from(source, **value):
    """Return a reading of one GPU every 30 s for ten minutes."""
    start = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
    at = [start + timedelta(seconds=30 * n) for n in range(21)]
    gpu = {"source": source, "gpu_uuid": "GPU-1", "gpu_instance": ""}
    return pl.DataFrame(gpu | {"ts": at} | value)


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
    said = "Nothing was ingested: `goodput ingest auto PATH --db goodput.duckdb`.\n"
    assert run(command).stderr == said


def test_a_refused_build_fails_and_the_ledger_of_before_answers(measured, monkeypatch):
    with contextlib.closing(LocalStore(measured)) as store:
        store.load(Batch("gpu_samples", read_from("b", engine_active_ratio=1.0), "b", "f", "4"))
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


AT = "2026-11-19T"
ACCOUNTING = SACCT.splitlines()[0] + "".join(
    f"\n{cluster}|{job}|{job}|ann|nlp|gpu|COMPLETED|{AT}08:00:00|{AT}08:00:00|{AT}08:00:00|"
    f"{AT}09:00:00|1|{cluster}{job}|gres/gpu=1|{name}"
    for cluster, job, name in (("c", 1, "main"), ("c", 2, "eval"), ("d", 1, "main"))
)


@pytest.fixture(scope="module")
def database(filled):
    """Give two clusters with a run `main` each, and one with a run `eval`."""
    return cost_file(filled, {}, ACCOUNTING)


@pytest.fixture
def store(database):
    with contextlib.closing(LocalStore(database)) as opened:
        yield opened


def asked(database, *arguments):
    return run(*arguments, "--db", str(database))


@each({
    "a unique name": (Scope(run="eval"), Scope(run="c/2")),
    "its key": (Scope(run="c/2"), Scope(run="c/2")),
    "its job": (Scope(run="2"), Scope(run="c/2")),
    "one of a cluster": (Scope(run="main", cluster="d"), Scope(run="d/1", cluster="d")),
})  # fmt: skip
def test_a_name_of_a_run_is_that_run(store, given, found):
    assert resolved(store, given) == found


@each(
    (Scope(run="main"), "run main is ambiguous: c/1, d/1. Give one of these."),
    (Scope(node="c1", cluster="d"), "The ledger knows no node c1 in cluster d."),
)
def test_an_ambiguous_name_lists_its_candidates_of_the_cluster(store, given, sentence):
    with pytest.raises(QueryError) as caught:
        resolved(store, given)
    assert str(caught.value) == sentence


def test_a_limit_of_0_is_no_limit(database, monkeypatch):
    monkeypatch.setattr("goodput_app.cli.output.TABLE_ROWS", 1)

    cut, whole = (asked(database, "runs", *of).stdout.splitlines() for of in ([], ["--limit", "0"]))

    assert (len(cut), len(whole)) == (2, 4)


ONE_JOB = SACCT.splitlines()[0] + (
    f"\nc|1|1|ann|nlp|gpu|COMPLETED|{AT}07:00:00|{AT}07:00:00|{AT}08:00:00|{AT}14:00:00|1|a|"
    "gres/gpu=4|train"
)
SITE = {
    "rates": "price_per_gpu_h\n2\n",
    "inventory": f"cluster,node,gpus,valid_from\nc,a,4,{AT}07:00Z\n",
    "node-states": f"cluster,node,state,start,end\nc,a,up,{AT}07:00Z,{AT}20:00Z\n",
}


@pytest.fixture(scope="module")
def one_job(filled):
    """Give a database of one job of four GPUs at 2 dollars, without telemetry or tariff.

    The GPUs are up and free for an hour before it, while it waits, and for six after it.
    """
    return cost_file(filled, SITE, ONE_JOB)


def rows(result):
    """Return the rows of a JSON answer: inputs by name, answers by label."""
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return {row["label" if row["kind"] == "answer" else "name"]: row for row in found}


def test_given_values_are_taken_and_others_are_asked_for(one_job):
    """What is reckoned with them: tests/app/scenarios/test_what_if.py."""
    result = asked(one_job, "what-if", "upgrade", "--format", "json", "--set", "old_gpus=100")

    found = rows(result)
    assert (found["old_gpus"]["kind"], found["old_gpus"]["low"]) == ("given", 100)
    assert found["speed_up"]["kind"] == "unknown"
    assert found["speed_up"]["low"] is None
    assert found["Payback"]["low"] is None
    assert "--set speed_up=..." in result.stderr
    assert "--set old_gpus" not in result.stderr


def test_what_the_ledger_knows_bears_its_view_and_idle_time_is_the_last_loss_to_halve(one_job):
    found = rows(asked(one_job, "what-if", "power-cap", "--format", "json"))
    largest = asked(one_job, "what-if", "halve-a-loss")
    named = asked(one_job, "what-if", "halve-a-loss", "--of", "Idle, no demand", "--format", "json")

    assert found["held_ratio"]["low"] == pytest.approx(24 / 52)
    assert found["held_ratio"]["basis"].startswith("marts.gpu_models: ")
    assert "Of: Idle with demand." in largest.stderr
    assert rows(named)["lost_gpu_h"]["low"] == 24


@each(
    (["upgrade", "--set", "use_ratio=2"], 2, "Share of GPU time that is useful is 2"),
    (["upgrade", "--set", "colour=2"], 2,
     "'colour' is not a value of upgrade, expected of: old_gpus"),
    (["upgrade", "--set", "new_gpus"], 2, "'new_gpus' is not like new_gpus=50."),
    (["upgrade", "--set", "new_gpus=nan"], 2, "New GPUs is NaN"),
    *(([name, of, "nlp"], 2, f"{name} is computed for whole clusters: {of} does not apply")
      for name, of in (("halve-a-loss", "--run"), ("upgrade", "--node"), ("upgrade", "--team"))),
    (["halve-a-loss", "--of", "gremlins"], 1,
     "--of 'gremlins' is not available here; there is: "),
    (["halve-a-loss", "--of", "throttled"], 1,
     "--of 'throttled': there is none of it in this range; there is"),
)  # fmt: skip
def test_a_wrong_value_or_filter_or_subject_is_named(one_job, arguments, code, words):
    assert words in failing("what-if", *arguments, "--db", str(one_job), code=code)


def test_answers_are_in_the_sites_currency(one_job, configured):
    configured('[statement]\ncurrency = "EUR"\n')

    for name, *given in (["halve-a-loss"], ["power-cap", "--set", "price_per_kwh=0.1"]):
        found = asked(one_job, "what-if", name, "--format", "json", *given)
        texts = [f"{row['unit']} {row['basis']} {row['worked']}" for row in rows(found).values()]
        assert any("EUR" in text for text in texts), name
        assert not any("USD" in text for text in texts), name
