"""What a page shows that was opened in-process: its elements, their texts, the files it offers."""

import io
from urllib.parse import parse_qs

import polars as pl
import pypdfium2
import pytest
from google.protobuf.message import Message
from streamlit.runtime.media_file_manager import MediaFileManager

HOSTILE = '<script>alert(1)</script> [x](http://evil) "quoted" a/b|c :red[z] $x$'


def page_of(store, name, **params):
    """Make the fixture of a page of this fixture's store, drawn once for all tests of a module."""

    @pytest.fixture(scope="module")
    def page(request, visit):
        return visit(request.getfixturevalue(store), name, **params)

    return page


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


def elements(app):
    """Yield the messages of all elements of a page."""
    waiting = [app._tree]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", {}).values()
        if (proto := getattr(node, "proto", None)) is not None:
            yield proto


def sent(app):
    """Return all that a page sends to the browser, its links, charts and tables included."""
    found = [proto.SerializeToString() for proto in elements(app)]
    return b"\n".join(found).decode("utf-8", "replace")


def texts_of(message):
    """Yield the texts of a message and of those in it, each with its type and field."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated else [value]:
            if isinstance(one, Message):
                yield from texts_of(one)
            elif isinstance(one, str):
                yield f"{type(message).__name__}.{field.name}", one


class Offered:
    """The files that pages offered: what makes each, by its name."""

    def __init__(self, monkeypatch):
        self.files = {}
        known = MediaFileManager.add_deferred

        def noted(manager, made, mime, at, file_name, **more):
            self.files[str(file_name)] = made
            return known(manager, made, mime, at, file_name, **more)

        monkeypatch.setattr(MediaFileManager, "add_deferred", noted)
        known_at_once = MediaFileManager.add

        def made(manager, data, mime, at, file_name=None, *more, **of):
            if file_name is not None:
                text = data.encode() if isinstance(data, str) else data
                self.files[str(file_name)] = lambda: text
            return known_at_once(manager, data, mime, at, file_name, *more, **of)

        monkeypatch.setattr(MediaFileManager, "add", made)


def file_text(name, file):
    """Return the text of a file that was downloaded."""
    if name.endswith(".parquet"):
        return str(pl.read_parquet(io.BytesIO(file)).to_dicts())
    if name.endswith(".arrow"):
        return str(pl.read_ipc_stream(io.BytesIO(file)).to_dicts())
    if name.endswith(".pdf"):
        with pypdfium2.PdfDocument(file) as document:
            return "\n".join(page.get_textpage().get_text_range() for page in document)
    return file.decode("utf-8")
