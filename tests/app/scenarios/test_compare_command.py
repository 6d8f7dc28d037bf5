"""`goodput compare` and the Compare page: exit codes, reports, runs, before and after a time."""

import json

import pytest
from tests import compared_runs
from tests.app.command_line import failing, run
from tests.app.opened_page import assert_sound, press, texts, tile
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
def test_an_equal_run_passes_and_no_unknown_or_incomparable_one(database, other, code, says):
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
    without = compared(database, "2020-01-01/2020-01-02", "2020-01-02/2020-01-03")
    assert "2020-01-01/2020-01-02: no run had GPUs (data: 2027-" in without.stdout


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


PAGE = "before_and_after"


@pytest.fixture(scope="module")
def store(filled, module_store):
    return module_store(copy_of=compared_runs.built(filled))


def tables(app):
    """Return the rows of each table as text, by its first column."""
    return {
        frame.value.columns[0]: [" ".join(map(str, row)) for row in frame.value.itertuples()]
        for frame in app.dataframe
    }


def test_before_and_after_a_time_are_compared_and_a_wrong_one_is_named(store, visit):
    change = f"{at(compared_runs.APART_S - 10).isoformat()}Z"
    app = visit(store, PAGE, by="time", at=change, to=f"{at(2000).isoformat()}Z")
    assert tile(app, "Change of speed").startswith("-5.")
    assert "banana" in texts(visit(store, PAGE, by="time", at="banana"))


def test_changes_between_runs_are_listed_and_open_both(store, visit):
    rows = [row for frame in tables(visit(store, PAGE)).values() for row in frame]
    assert sum("580.2" in row for row in rows) == 2  # to it and back


def test_two_runs_are_compared_with_what_differs_files_and_notes(store, visit):
    app = visit(store, PAGE, a="c/old", b="c/new", align="progress")

    assert tile(app, "Change of speed").startswith("-5.")
    assert tile(app, "Speed of A") == "4.001"
    labels = {button.proto.label for button in app.get("download_button")}
    assert {"Text", "JSON", "Markdown", "HTML"} <= labels
    differing = next(rows for rows in tables(app).values() if any("580.2" in row for row in rows))
    assert len(differing) == 3
    assert len(app.get("plotly_chart")) == 3

    app.selectbox(key="note_run").select("c/new")
    app.text_input(key="said_by").input("ops")
    next(box for box in app.text_input if box.label == "Note").input("cuDNN <b>fell back</b>")
    app = assert_sound(press(app, "Add note"))

    noted = store.read("select run_key, said_by, note from marts.run_notes").rows()
    assert noted == [("c/new", "ops", "cuDNN <b>fell back</b>")]
    assert any("cuDNN" in row for rows in tables(app).values() for row in rows)
