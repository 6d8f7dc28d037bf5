"""`goodput ingest`, `collect` and `build` with a lake, `goodput lake`, a server's upkeep of it."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.app.command_line import failing, run
from tests.queries.lake.conftest import readings
from tests.tables import each

from goodput_app.server.background import Upkeep
from goodput_lake import attached
from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_queries.errors import StoreError
from goodput_queries.ledger_build.lake import LakeOptions

pytestmark = pytest.mark.usefixtures("site")
STEP = {"v": 1, "ts": 1795177781.5, "event": "step", "step": 7, "dur_s": 1.0}
WHO = {"run_id": "9001", "rank": 0, "host": "n1"}


@pytest.fixture
def site(here, configured):
    """Work in a folder with a lake, settings that name it, and a folder of job events."""
    Lake.create("lake", buckets=2)
    (here / "events").mkdir()
    (here / "events" / "job.jsonl").write_text(json.dumps(STEP | WHO) + "\n")
    configured(
        '[lake]\nurl = "lake"\ncluster = "west"\n'
        '[[collect]]\nsource = "job-events"\nfolder = "events"\ninterval_s = 0.1\n'
    )
    return here


def rows_of(url, *columns):
    return Lake.open(url).rows("job_events", columns=columns).read_all().to_pylist()


def test_collect_loads_into_the_lake_of_the_settings():
    done = [run("collect", "--once", "--format", "json") for _ in range(2)]

    assert [one.exit_code for one in done] == [0, 0], done[0].output
    assert [json.loads(one.stdout)[0]["rows_new"] for one in done] == [1, 0]
    assert rows_of("lake", "step", "lake_cluster") == [{"step": 7, "lake_cluster": "west"}]
    assert not Path("goodput.duckdb").exists()


def test_ingest_loads_into_a_lake_that_is_named():
    assert run("lake", "create", "--lake", "other").exit_code == 0
    done = run("ingest", "job-events", "events", "--lake", "other", "--cluster", "east")

    assert done.exit_code == 0, done.output
    assert "Next:" not in done.stderr  # the ledger is of a database
    assert rows_of("other", "lake_cluster") == [{"lake_cluster": "east"}]
    assert rows_of("lake", "step") == []


def test_a_database_on_the_command_line_beats_the_lake_and_publishes_closed_hours(empty_database):
    shutil.copyfile(empty_database, "site.duckdb")
    published = run("lake", "publish", "--db", "site.duckdb")
    done = run("ingest", "job-events", "events", "--db", "site.duckdb")

    assert (published.exit_code, published.stderr) == (0, "No closed hour changed.\n")
    assert not Path("lake", "ledger").exists()
    assert done.exit_code == 0, done.output
    assert rows_of("lake", "step") == []


@each(
    (["--lake", "lake", "--db", "x.duckdb"], "name --db or --lake"),
    (["--reopen"], "--reopen is for a database"),
    (["--lake", "none"], "none: there is no lake; make one with `goodput lake create`."),
)
def test_what_cannot_be_loaded_is_said(arguments, sentence):
    done = run("ingest", "job-events", "events", *arguments)
    assert done.exit_code != 0
    assert sentence in done.stderr
    assert not Path("none").exists()


def test_a_lake_is_listed_compacted_and_pruned(site):
    empty = run("lake", "status")
    run("collect", "--once")
    (site / "events" / "job.jsonl").write_text(json.dumps(STEP | WHO | {"step": 8}) + "\n")
    run("collect", "--once")
    listed, compacted, pruned = (
        run("lake", verb, "--format", "json") for verb in ("status", "compact", "prune")
    )

    assert "Nothing was loaded into it yet." in empty.stderr
    (row,) = json.loads(listed.stdout)
    assert (row["table"], row["cluster"], row["rows"], row["files"]) == ("job_events", "west", 2, 2)
    of_events = json.loads(compacted.stdout)[0]
    assert (of_events["files_before"], of_events["files"]) == (2, 1)
    assert "[retention] in goodput.toml is not set" in pruned.stderr
    assert [one.exit_code for one in (listed, compacted, pruned)] == [0, 0, 0]


def test_no_lake_is_named(configured):
    configured("")
    said = failing("lake", "status")
    assert said.startswith("no lake is named: add --lake URL, or `url` under [lake]")


def test_doctor_looks_at_the_lake(site):
    def doctor(*arguments):
        rows = json.loads(run("doctor", "--format", "json", *arguments).stdout)
        return {row["what"]: (row["status"], row["found"]) for row in rows}

    run("build", "--db", "site.duckdb", "--lake", "lake")
    run("collect", "--once")
    found = doctor("--db", "site.duckdb")
    assert found["lake"] == ("ok", f"{site / 'lake'}, format 1, 2 buckets")
    assert found["lake cluster"] == ("ok", "west, of rows from here that name none")
    status, text = found["lake job_events"]
    assert status == "ok"
    assert re.fullmatch(r"last load .*Z, from job-events of west", text)
    assert found["lake files"] == (
        "ok",
        "0 of 1 files are small ones that a compaction would merge",
    )
    assert found["lake of the database"] == ("missing", "site.duckdb is 1 load behind")
    shutil.rmtree("lake")
    assert doctor()["lake"][0] == "problem"


def test_rows_of_an_unknown_cluster_are_warned_of(configured, caplog):
    configured('[lake]\nurl = "lake"\n')
    run("ingest", "job-events", "events")
    assert "name no cluster, and none is configured: add `cluster` under [lake]" in caplog.text
    assert rows_of("lake", "lake_cluster") == [{"lake_cluster": None}]


def test_a_database_of_a_lake_has_what_others_loaded_and_loads_into_it_with_its_cluster(site):
    run("ingest", "job-events", "events", "--lake", "lake")

    assert run("build", "--db", "a.duckdb", "--lake", "lake", "--workers", "1").exit_code == 0

    shown = run("show", "raw.job_events", "--db", "a.duckdb", "--format", "json")
    assert [row["run_id"] for row in json.loads(shown.stdout)] == ["9001"]
    (site / "events" / "more.jsonl").write_text(json.dumps(STEP | WHO | {"step": 8}) + "\n")
    repeated = run("ingest", "job-events", "events", "--db", "a.duckdb", "--format", "json")
    assert json.loads(repeated.stdout)[0]["rows_new"] == 1  # the other went into the lake
    assert rows_of("lake", "lake_cluster") == [{"lake_cluster": "west"}] * 2


def test_a_database_with_evidence_of_its_own_is_not_mixed_with_a_lake():
    run("ingest", "job-events", "events", "--db", "a.duckdb")

    mixed = failing("build", "--db", "a.duckdb", "--lake", "lake")
    assert "it has evidence of its own; use a new database" in mixed
    without = failing("build", "--db", "a.duckdb", "--engine", "ray")
    assert "it is not the database of a lake" in without


def test_the_lake_is_looked_into_every_half_a_minute(tmp_path, new_store, monkeypatch, caplog):
    """Publishing that fails is logged; the ledger is up to date nevertheless."""

    def fail(*_):
        raise StoreError("s3://metrics/goodput/ledger: cannot be written")

    lake = Lake.create(str(tmp_path / "upkept"), buckets=1)
    store = new_store()
    store.lake_options = LakeOptions(publishes=True)
    attach(store, lake.url)
    monkeypatch.setattr(attached, "publish_noted", fail)
    upkeep = Upkeep(store)
    for number in range(2):
        lake.append(readings(f"d{number}", (30 * number,)))
        upkeep.run()

    assert store.read("select count(*) from state.ingested").item() == 1
    assert [one.message for one in caplog.records if "published" in one.message] == [
        "closed hours were not published: s3://metrics/goodput/ledger: cannot be written"
    ]
