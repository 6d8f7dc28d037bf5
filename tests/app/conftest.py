"""What tests of the app share: pages opened in-process, as a link would, and small databases."""

from __future__ import annotations

import contextlib
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.util import calc_hash
from tests.app.cost_page import PRICED, cost_store
from tests.made_once import made_once

import goodput_app
from goodput_app.dashboard import flags
from goodput_app.dashboard.data import findings
from goodput_app.dashboard.state import use_store
from goodput_app.server.asgi import STREAMLIT_CONFIG
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAIN = Path(goodput_app.__file__).with_name("dashboard") / "main.py"
PATIENCE_S = 30
NO_COMPONENTS = BidiComponentManager()  # else each page looks for some in all installed packages
URL_PATHS = {  # of all pages but the first
    file: title.lower()
    for file, title in re.findall(r'_page\("(\w+)\.py", "(\w+)", "\w+"\)', MAIN.read_text("utf-8"))
}


def opened(
    store: LocalStore, page: str = "fleet_overview", *, patience_s: int = PATIENCE_S, **params: str
) -> AppTest:
    """Open a page of a store, as a link with these query parameters would."""
    use_store(store)
    app = AppTest.from_file(str(MAIN), default_timeout=patience_s)
    app._bidi_component_manager = NO_COMPONENTS
    if page != "fleet_overview":
        # `switch_page` would need a run of the first page before, which costs as much again
        app._page_hash = calc_hash(URL_PATHS[page])
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


@pytest.fixture(scope="session", autouse=True)
def _as_a_server_runs_pages() -> Iterator[None]:
    """Run pages with the settings of our server, and compile each script once, as it does."""
    for name, value in STREAMLIT_CONFIG.items():
        config.set_option(name, value)
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        yield


@pytest.fixture(scope="module")
def visit() -> Iterator[Callable[..., AppTest]]:
    """Give what opens a page of a store; answers are kept over the tests of a module.

    As a server keeps them: their keys name the store.
    """
    yield opened
    st.cache_data.clear()


@pytest.fixture(autouse=True)
def _without_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate no findings beside the pages: they are of tests of their own."""
    monkeypatch.setattr(flags, "IS_EVALUATED", False)


@pytest.fixture(autouse=True)
def _with_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for findings: nobody draws the page again once they are evaluated."""
    monkeypatch.setattr(findings, "WAIT_S", PATIENCE_S)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def two_gpus(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a database with two GPUs and a row that was rejected, to be copied."""
    rows = pl.DataFrame(
        {
            "source": "test",
            "cluster": "lab",
            "gpu_uuid": ["GPU-1", "GPU-2"],
            "node": ["n1", "\x1b[31mn2"],
            "memory_bytes": [151_000_000_000, None],
            "power_limit_w": [700.0, float("nan")],
            "valid_from_at": [datetime(2026, 11, 20, 12), None],  # noqa: DTZ001 -- naive UTC
        }
    )

    def make(path: Path) -> None:
        shutil.copyfile(empty_database, path)
        with contextlib.closing(LocalStore(path)) as store:
            store.load(Batch("gpus", rows, "test", "file", "1", [Reject(3, "14 fields", "a|b")]))

    return made_once(tmp_path_factory, "two_gpus", make)


@pytest.fixture
def database(here: Path, two_gpus: Path) -> Path:
    """Give `goodput.duckdb` with two GPUs and a row that was rejected."""
    return Path(shutil.copyfile(two_gpus, here / "goodput.duckdb"))


@pytest.fixture(scope="module")
def priced(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give three jobs of two accounts on two days, at 2 dollars, and a budget."""
    yield from cost_store(empty_database, tmp_path_factory, PRICED)


@pytest.fixture(scope="module")
def unpriced(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give the same jobs without any price."""
    yield from cost_store(empty_database, tmp_path_factory, {})


@pytest.fixture
def cost(visit: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Give what opens the Cost page and holds it to being sound."""

    def opened(store: LocalStore, **params: str) -> AppTest:
        app = visit(store, "cost_statement", **params)
        assert not app.exception, app.exception
        assert not app.error, [error.value for error in app.error]
        return app

    return opened


@pytest.fixture
def editable(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give jobs at 2 dollars whose prices a test may change."""
    yield from cost_store(empty_database, tmp_path_factory, PRICED)
