"""`goodput findings`, `fixes` and `finding`: what needs a person, and what people say of it."""

import json
import shutil

import pytest
from tests.app.command_line import failing, rows, run
from tests.app.cost_page import PRICED, cost_file
from tests.recorded_session import CAPTURED, built


@pytest.fixture(scope="module")
def recorded(filled, tmp_path_factory):
    """Return the path of the recorded session, which nobody has open."""
    path = tmp_path_factory.mktemp("recorded") / "fleet.duckdb"
    return str(shutil.copyfile(built(filled, *CAPTURED), path))


def test_faults_of_a_session_of_minutes_are_listed_and_those_below_a_severity_counted(recorded):
    shown = rows("findings", "--db", recorded)
    result = run("findings", "--db", recorded, "--severity", "page", "--format", "json")

    assert {"input_stall", "job_failure", "gaps_between_steps"} <= {row["rule"] for row in shown}
    assert {row["severity"] for row in shown} == {"ticket"}
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert "No findings of severity page or above (data: " in result.stderr
    assert "below it: add --severity note." in result.stderr


def test_fixes_are_sorted_by_what_comes_back_and_those_without_are_counted(recorded):
    shown = run("fixes", "--db", recorded, "--format", "json")
    every = rows("fixes", "--db", recorded, "--all")

    listed = json.loads(shown.stdout)
    folded = [row for row in every if row["back_high_ms"] == 0]
    assert listed == [row for row in every if row["back_high_ms"] > 0]
    assert len(folded) > 0
    assert f"{len(folded)} more give no GPU time back: add --all." in shown.stderr
    costs = [row["back_cost"] for row in listed if row["back_cost"] is not None]
    assert costs == sorted(costs, reverse=True)
    (input_,) = (row for row in listed if row["fix"] == "feed_input")
    assert input_["target"] == "research / main"
    assert input_["back_ms"] == input_["gpu_ms"] > 20_000


def test_objectives_are_those_of_the_settings_and_no_data_has_no_fixes(recorded, configured):
    none = run("objectives", "--db", recorded, "--format", "json")
    assert (json.loads(none.stdout), "goodput.toml" in none.stderr) == ([], True)

    configured('[[objectives]]\ncluster = "lab"\ntarget = 0.5\n')
    (row,) = rows("objectives", "--db", recorded)
    assert (row["name"], row["target_ratio"], row["burn_rate_1h"]) == ("lab", 0.5, None)
    later = run("fixes", "--db", recorded, "--from", "2026-11-21", "--to", "2026-11-22")
    assert "No findings in this time range (data: 2026-11-20" in later.stderr


def test_notes_are_listed_when_asked_for_and_an_acknowledged_finding_by_its_state(here, filled):
    shutil.copyfile(cost_file(filled, PRICED), here / "goodput.duckdb")
    notes = ("findings", "--severity", "note")
    every = rows(*notes)
    key = next(row["finding_key"] for row in every if row["rule"] == "evidence_conflict")

    of = ("--by", "ops", "--note", "seen")
    assert "There is no finding nothing" in failing("finding", "acknowledge", "nothing", *of)
    said = run("finding", "acknowledge", key, *of)
    assert said.exit_code == 0, said.output

    assert {row["severity"] for row in every} == {"note"}
    (row,) = rows(*notes, "--state", "acknowledged")
    assert (row["finding_key"], row["note"], row["said_by"]) == (key, "seen", "ops")
