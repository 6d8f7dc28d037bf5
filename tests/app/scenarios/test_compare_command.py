"""`goodput compare`: its exit codes, and its report in each format."""

import json

import pytest
from tests import compared_runs
from tests.app.command_line import failing, run
from tests.queries.conftest import at
from tests.tables import each

SLOWER = ("--fail-on", "slower=3%")


@pytest.fixture(scope="module")
def database(filled):
    return str(compared_runs.built(filled))


def compared(database, *arguments):
    return run("compare", *arguments, "--db", database)


def test_a_slower_run_fails_with_the_difference_and_what_differs(database):
    found = compared(database, "old", "new", *SLOWER, "--format", "json")

    assert found.exit_code == 1
    assert found.stderr.startswith("failed (slower=3%): speed -5.")
    answer = json.loads(found.stdout)
    assert answer["verdicts"][0]["outcome"] == "failed"
    speed = next(row for row in answer["measures"] if row["measure"] == "Speed")
    assert speed["unit"] == "samples/s"
    assert (speed["count_a"], speed["counted"]) == (110, "steps")
    assert speed["low_ratio"] < 1 / 1.06 - 1 < speed["high_ratio"] < -0.03
    assert 0.005 < speed["spread_a_ratio"] < 0.015
    step = next(row for row in answer["measures"] if row["measure"] == "Step time")
    assert step["change_ratio"] == pytest.approx(1 / (1 + speed["change_ratio"]) - 1)
    rows = [row for row in answer["attributes"] if row["is_different"]]
    assert {row["attribute"]: (row["a"], row["b"]) for row in rows} == {
        "commit": ("a1", "b2"), "driver_version": ("580.1", "580.2"), "node_names": ("n0", "n1"),
    }  # fmt: skip


@each(
    ("same", 0, "Passed (slower=3%): speed "),
    ("hot", 1, "not comparable (slower=3%): hot: throttling, "),
    ("nwe", 1, "The ledger knows no run nwe; did you mean new?"),
)
def test_an_equal_run_passes_and_one_that_is_not_comparable_or_known_does_not(
    database, other, code, says
):
    found = compared(database, "old", other, *SLOWER)

    assert (found.exit_code, says in found.output) == (code, True), found.output


def test_two_time_ranges_are_compared_by_workload(database):
    windows = [
        f"{at(begin).isoformat()}Z/{at(end).isoformat()}Z"
        for begin, end in ((0, 900), (1000, 1900))
    ]

    found = compared(database, *windows, *SLOWER, "--format", "json")

    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout)["b"]["runs"] == 1


@each(("html", "&lt;b&gt;|x\\x1b[31m"), ("md", r"\<b\>\|x\\x1b\[31m"))
def test_a_report_is_written_in_the_format_of_its_name(database, tmp_path, suffix, escaped):
    """Names of jobs are not ours: nothing in them is markup."""
    out = tmp_path / f"report.{suffix}"

    found = compared(database, "old", "new", "--out", str(out))

    assert (found.exit_code, found.stdout) == (0, "")
    text = out.read_text()
    assert escaped in text
    assert "\x1b" not in text


@each(
    (("old", "new", "--fail-on", "slower=3"), "'slower=3' is not like slower=3%."),
    (("old", "new", "--fail-on", "faster=3%"), "is not like slower=3%."),
    (("now/now-1d", "new"), "the time range now/now-1d is empty."),
    (("2026-11-20/x", "new"), "'x' is not a valid time; expected like"),
    (("x/now", "new"), "'x' is not a valid time; expected like"),
    (("old", "old"), "A and B are the same run."),
    (("old", "new", "--out", "report.pdf"), "say --format"),
    (("old", "new", "--run", "old"), "--run is of time ranges"),
)
def test_wrong_use_exits_with_2(database, arguments, says):
    assert says in failing("compare", *arguments, "--db", database, code=2)


def test_a_time_range_without_runs_names_that_of_the_data(database):
    found = compared(database, "2020-01-01/2020-01-02", "2020-01-02/2020-01-03")

    assert "2020-01-01/2020-01-02: no run had GPUs (data: 2027-" in found.stdout
