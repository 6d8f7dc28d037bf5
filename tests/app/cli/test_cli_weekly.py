"""`goodput report weekly`: the page Report as Markdown."""

import shutil

import pytest
from tests.app.command_line import run
from tests.app.opened_page import HOSTILE

from goodput_app.cli.weekly import WORDS


@pytest.fixture
def weekly(two_weeks_file, tmp_path):
    """Give what prints the report of the two weeks."""
    path = str(shutil.copyfile(two_weeks_file, tmp_path / "weeks.duckdb"))
    return lambda *options: run("report", "weekly", "--db", path, *options)


def test_it_prints_the_last_whole_week_with_its_change(weekly):
    said = weekly().output.replace("\\", "")

    assert said.startswith("# Week of 2027-01-25 to 2027-01-31\n")
    assert "25.0 %**, \N{MINUS SIGN}75.0 points against the same hours of the week before" in said
    assert "| Wasted in this week | $960.00 |" in said
    assert "| nlp | $336.00 | +$336.00 | Failures |" in said
    assert "- Budget of nlp: $1,344.00 of $900.00" in said


def test_a_week_that_goes_on_says_how_far_its_data_reach(weekly):
    said = weekly("--date", "2027-02-03", "--team", "nlp")

    assert said.output.startswith("# Week of 2027-02-01 to 2027-02-07, data to 2027-02-01 06:00")


def test_a_week_without_data_is_refused_with_what_there_is(weekly):
    result = weekly("--date", "2026-06-01")

    assert result.exit_code == 1
    assert "no data in the week of 2026-06-01: they go from 2027-01-15 08:00 UTC" in result.output


def test_options_of_a_statement_are_refused_before_weekly():
    result = run("report", "--date", "2027-01-20", "weekly")

    assert result.exit_code == 2
    assert "options of `weekly` stand behind it" in result.output


def test_names_are_shown_literally():
    shown = WORDS.literal(f"{HOSTILE}\x1b[31m")

    assert "\\<script\\>" in shown
    assert "a/b\\|c" in shown
    assert "\x1b" not in shown
