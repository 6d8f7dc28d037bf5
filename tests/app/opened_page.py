"""What a page shows that was opened in-process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest


def texts(app: AppTest) -> str:
    """Return all text of a page that is not in a table or chart."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    shown = [str(element.value) for kind in kinds for element in kind]
    return "\n".join([*shown, *(f"{m.label}: {m.value}" for m in app.metric)])


def assert_sound(app: AppTest) -> None:
    """Hold a page to having no exception and no panel in error."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
