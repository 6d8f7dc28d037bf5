"""The Compare page: two runs, a time range before and after, and changes between runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests import compared_runs
from tests.app.opened_page import assert_sound, texts
from tests.queries.conftest import Evidence, at

from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "before_and_after"


@pytest.fixture(scope="module")
def store(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give the runs of tests.compared_runs."""
    path = tmp_path_factory.mktemp("compare") / "fleet.duckdb"
    path.write_bytes(empty_database.read_bytes())
    store = LocalStore(path)
    compared_runs.load(Evidence(store))
    store.build()
    yield store
    store.close()


def tables(app: AppTest) -> dict[str, list[str]]:
    """Return the rows of each table as text, by its first column."""
    return {
        frame.value.columns[0]: [" ".join(map(str, row)) for row in frame.value.itertuples()]
        for frame in app.dataframe
    }


def metric(app: AppTest, label: str) -> str:
    """Return the value of a tile, without the marks that keep Markdown out of it."""
    value = next(tile.value for tile in app.metric if tile.label == label)
    return str(value).replace("\\", "")


def test_two_runs_are_compared_with_what_differs_and_files(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(store, PAGE, a="c/old", b="c/new")

    assert_sound(app)
    assert metric(app, "Change of speed").startswith("-5.")
    assert metric(app, "Speed of A") == "4.001"
    labels = {button.proto.label for button in app.get("download_button")}
    assert {"Text", "JSON", "Markdown", "HTML"} <= labels
    differing = next(rows for rows in tables(app).values() if any("580.2" in row for row in rows))
    assert len(differing) == 3
    assert len(app.get("plotly_chart")) == 3


def test_a_throttled_run_is_marked(store: LocalStore, visit: Callable[..., AppTest]) -> None:
    app = visit(store, PAGE, a="c/old", b="c/hot", align="progress")

    assert_sound(app)
    assert re.search(r"is not comparable: .*hot", texts(app).replace(chr(92), ""))


def test_a_time_of_a_change_compares_what_is_before_and_after(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    change = f"{at(compared_runs.APART_S - 10).isoformat()}Z"
    app = visit(store, PAGE, by="time", at=change, to=f"{at(2000).isoformat()}Z")

    assert_sound(app)
    assert metric(app, "Change of speed").startswith("-5.")


def test_a_wrong_time_is_named(store: LocalStore, visit: Callable[..., AppTest]) -> None:
    shown = texts(visit(store, PAGE, by="time", at="banana"))

    assert "banana" in shown


def test_changes_between_runs_are_listed_and_open_both(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(store, PAGE)

    assert_sound(app)
    rows = [row for frame in tables(app).values() for row in frame]
    assert sum("580.2" in row for row in rows) == 2  # to it and back


def test_a_note_on_a_run_is_kept_and_shown(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(store, PAGE, a="c/old", b="c/new")
    app.selectbox(key="note_run").select("c/new")
    app.text_input(key="said_by").input("ops")
    next(box for box in app.text_input if box.label == "Note").input("cuDNN <b>fell back</b>")
    next(button for button in app.button if button.label == "Add note").click()
    app.run()

    assert_sound(app)
    noted = store.read("select run_key, said_by, note from marts.run_notes").rows()
    assert noted == [("c/new", "ops", "cuDNN <b>fell back</b>")]
    assert any("cuDNN" in row for rows in tables(app).values() for row in rows)
