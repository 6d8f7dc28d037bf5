"""`goodput build --lake`: a database of a lake, and what is refused."""

import json

from tests.app.command_line import run


def event(tmp_path):
    path = tmp_path / "run.jsonl"
    line = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "r", "rank": 0}
    path.write_text(json.dumps(line) + "\n")
    return str(path)


def test_a_database_of_a_lake_has_what_others_loaded(tmp_path):
    lake, db = str(tmp_path / "lake"), str(tmp_path / "fleet.duckdb")
    assert run("lake", "create", "--lake", lake).exit_code == 0
    run("ingest", "job-events", event(tmp_path), "--lake", lake)

    assert run("build", "--db", db, "--lake", lake, "--workers", "1").exit_code == 0

    shown = run("show", "raw.job_events", "--db", db, "--format", "json")
    assert [row["run_id"] for row in json.loads(shown.stdout)] == ["r"]
    repeated = run("ingest", "job-events", event(tmp_path), "--db", db, "--format", "json")
    assert json.loads(repeated.stdout)[0]["rows_new"] == 0  # it went into the lake


def test_a_database_with_evidence_of_its_own_is_not_mixed_with_a_lake(tmp_path):
    lake, db = str(tmp_path / "lake"), str(tmp_path / "fleet.duckdb")
    run("lake", "create", "--lake", lake)
    run("ingest", "job-events", event(tmp_path), "--db", db)

    mixed = run("build", "--db", db, "--lake", lake)
    assert mixed.exit_code == 1
    assert "it has evidence of its own; use a new database" in mixed.stderr
    without = run("build", "--db", db, "--engine", "ray")
    assert without.exit_code == 1
    assert "it is not the database of a lake" in without.stderr
