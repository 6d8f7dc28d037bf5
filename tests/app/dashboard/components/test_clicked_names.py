"""A click on a name of a table opens its page; else one on the first column picks the row."""

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.app.conftest import PATIENCE_S
from tests.app.opened_page import texts
from tests.tables import each

from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.table_columns import Columns

NAMES = Columns({"rack": "Rack", "gpus": "GPUs"})
OF_NODE = Columns({"rack": "Rack", "node": "Node"})
NARROW = Columns(NAMES, {"rack": 10})
OPENS = [{"rack": "r1"}, {"rack": "r2"}]


def _page(clicked, names, column, of):
    from types import SimpleNamespace  # noqa: PLC0415 -- Streamlit runs the function alone

    import polars as pl  # noqa: PLC0415
    import streamlit as st  # noqa: PLC0415

    from goodput_app.dashboard.components import tables  # noqa: PLC0415

    rows = pl.DataFrame({"rack": ["r1", "r2"], "gpus": [1, 2], "node": [None, "n1"]})
    tables.pick(rows, names, "things", pl.Series(["id1", "id2"]), **of)
    if click := clicked.get(f"open_things_{column}"):
        st.session_state[f"open_things_{column}"] = SimpleNamespace(row=1)
        click()


@pytest.fixture
def draw(monkeypatch):
    """Draw a table of two racks, and click on a cell of its second row; give the page."""

    def drawn(names, column=None, **of):
        clicked = {}
        known = st.column_config.ButtonColumn

        def noted(label, *, on_click, key, **_):
            clicked[key] = on_click
            return st.column_config.TextColumn(label)

        monkeypatch.setattr(st.column_config, "ButtonColumn", noted)
        kwargs = {"clicked": clicked, "names": names, "column": column, "of": of}
        app = AppTest.from_function(_page, default_timeout=PATIENCE_S, kwargs=kwargs).run()
        monkeypatch.setattr(st.column_config, "ButtonColumn", known)
        assert not app.exception, app.exception
        return app, list(clicked)

    return drawn


@each(
    (NAMES, {}, {"things": "id2"}),
    (NAMES, {"opens": OPENS}, {"rack": "r2"}),
    (NAMES, {"first_opens": OPENS}, {"rack": "r2"}),
)
def test_a_click_on_the_first_column_does_what_the_row_does(draw, names, of, params):
    app, _ = draw(names, "rack", **of)
    assert app.query_params == params
    assert "a click or Enter on Rack too" in texts(app)


def test_a_column_of_names_opens_their_pages_and_no_other_column_is_clicked(draw):
    app, clicked = draw(OF_NODE, "node")
    assert clicked == ["open_things_node"]
    page, params = app.session_state[name_links.GOING]
    assert (page, params["node"]) == (name_links.NODE_PAGE, "n1")
    assert app.dataframe[0].value["node"].to_list() == ["-", "n1"]


@each(
    (NARROW, "open_things_rack"),  # longer than a line of its column: it is read, not clicked
    (OF_NODE.hiding(["node"]), "open_things_node"),
)
def test_what_cannot_be_seen_in_a_line_is_not_clicked(draw, names, column):
    app, clicked = draw(names)
    assert column not in clicked
    assert name_links.HINT not in texts(app)
