"""What a page shows that was opened in-process."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import polars as pl

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

HOSTILE = '<script>alert(1)</script> [x](http://evil) "quoted" a/b|c :red[z] $x$'


def texts(app: AppTest) -> str:
    """Return all text of a page that is not in a table or chart, as Markdown."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    shown = [str(element.value) for kind in kinds for element in kind]
    return "\n".join([*shown, *(f"{m.label}: {m.value}" for m in app.metric)])


def plain(app: AppTest) -> str:
    """Return the same without the marks that keep names out of Markdown."""
    return texts(app).replace("\\", "")


def tile(app: AppTest, label: str) -> str:
    """Return what a tile or answer shows."""
    (found,) = (metric.value for metric in app.metric if metric.label == label)
    return str(found).replace("\\", "")


def table(app: AppTest, *columns: str) -> pl.DataFrame:
    """Return the first table that has these columns."""
    found = (pl.from_pandas(frame.value) for frame in app.dataframe)
    return next(frame for frame in found if set(columns) <= set(frame.columns))


def links(app: AppTest) -> dict[str, dict[str, list[str]]]:
    """Return the query parameters of each link on the page, by its label."""
    found = [element.proto for element in app.get("page_link")]
    return {link.label: parse_qs(link.query_string) for link in found}


def press(app: AppTest, label: str) -> AppTest:
    """Press the button of a label; return the page that is drawn then."""
    (button,) = (button for button in app.button if button.label == label)
    return button.click().run()


def assert_sound(app: AppTest) -> AppTest:
    """Hold a page to having no exception and no panel in error; return it."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    return app
