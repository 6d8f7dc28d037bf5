"""What tests of pages share: a page opened in-process, as a link would."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import goodput_app
from goodput_app.state import use_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from goodput_queries.store import LocalStore

MAIN = Path(goodput_app.__file__).with_name("main.py")
PATIENCE_S = 30


@pytest.fixture
def visit() -> Iterator[Callable[..., AppTest]]:
    """Give what opens a page of a store, as a link with these query parameters would."""

    def opened(store: LocalStore, page: str = "fleet_overview", **params: str) -> AppTest:
        use_store(store)
        app = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
        if page != "fleet_overview":
            app.run()
            app.switch_page(f"pages/{page}.py")
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    yield opened
    st.cache_data.clear()
