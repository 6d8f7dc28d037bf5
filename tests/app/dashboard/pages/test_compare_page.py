"""The Compare page: two runs, a time range before and after, and changes between runs."""

import pytest
from tests import compared_runs
from tests.app.opened_page import assert_sound, press, texts, tile
from tests.queries.conftest import at

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


def test_a_time_of_a_change_compares_what_is_before_and_after_and_a_wrong_one_is_named(
    store, visit
):
    change = f"{at(compared_runs.APART_S - 10).isoformat()}Z"
    app = visit(store, PAGE, by="time", at=change, to=f"{at(2000).isoformat()}Z")

    assert tile(app, "Change of speed").startswith("-5.")
    assert "banana" in texts(visit(store, PAGE, by="time", at="banana"))


def test_changes_between_runs_are_listed_and_open_both(store, visit):
    app = visit(store, PAGE)

    rows = [row for frame in tables(app).values() for row in frame]
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
