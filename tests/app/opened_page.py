"""What a page shows that was opened in-process."""

from urllib.parse import parse_qs

import polars as pl

HOSTILE = '<script>alert(1)</script> [x](http://evil) "quoted" a/b|c :red[z] $x$'


def texts(app):
    """Return all text of a page that is not in a table or chart, as Markdown."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    shown = [str(element.value) for kind in kinds for element in kind]
    return "\n".join([*shown, *(f"{m.label}: {m.value}" for m in app.metric)])


def plain(app):
    """Return the same without the marks that keep names out of Markdown."""
    return texts(app).replace("\\", "")


def tile(app, label):
    """Return what a tile or answer shows."""
    (found,) = (metric.value for metric in app.metric if metric.label == label)
    return str(found).replace("\\", "")


def table(app, *columns):
    """Return the first table that has these columns."""
    found = (pl.from_pandas(frame.value) for frame in app.dataframe)
    return next(frame for frame in found if set(columns) <= set(frame.columns))


def links(app):
    """Return the query parameters of each link on the page, by its label."""
    found = [element.proto for element in app.get("page_link")]
    return {link.label: parse_qs(link.query_string) for link in found}


def press(app, label):
    """Press the button of a label; return the page that is drawn then."""
    (button,) = (button for button in app.button if button.label == label)
    return button.click().run()


def assert_sound(app):
    """Hold a page to having no exception and no panel in error; return it."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    return app
