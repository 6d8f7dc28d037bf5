"""What tests of the app share: pages opened in-process, as a link would, and small databases."""

import re
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.util import calc_hash
from tests.app.cost_page import PRICED, cost_file
from tests.app.opened_page import assert_sound
from tests.app.receivers import post_office, web
from tests.app.two_weeks import load as load_weeks
from tests.hostile_names import load_hostile
from tests.queries.conftest import Evidence, store_of
from tests.two_teams import COBALTS, load

import goodput_app
from goodput_app.access import current
from goodput_app.access.identity import Identity
from goodput_app.dashboard import flags
from goodput_app.dashboard.data import findings
from goodput_app.process import usage
from goodput_app.process.store import use_store
from goodput_app.server.asgi import STREAMLIT_CONFIG
from goodput_app.settings import read
from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch, Reject

MAIN = Path(goodput_app.__file__).with_name("dashboard") / "main.py"
PATIENCE_S = 180  # a limit for a busy machine, which no test waits for
NO_COMPONENTS = BidiComponentManager()  # else each page looks for some in all installed packages
URL_PATHS = {  # of all pages but the first
    file: title.lower()
    for file, title in re.findall(r'_page\("(\w+)\.py", "(\w+)", "\w+"\)', MAIN.read_text("utf-8"))
}


def opened(store, page="fleet_overview", *, patience_s=PATIENCE_S, **params):
    """Open a page of a store, as a link with these query parameters would."""
    use_store(store)
    return at_path(URL_PATHS.get(page, ""), patience_s=patience_s, **params)


def at_path(path, *, patience_s=PATIENCE_S, **params):
    """Open the page at a path of the URL, of the store in use."""
    app = AppTest.from_file(str(MAIN), default_timeout=patience_s)
    app._bidi_component_manager = NO_COMPONENTS
    if path:
        # `switch_page` would need a run of the first page before, which costs as much again
        app._page_hash = calc_hash(path)
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


LOOK_S = 0.1  # for a page that is drawn already


def _wait(runner, timeout, look=local_script_runner.require_widgets_deltas):
    """Wait until a page is drawn, then look; raises RuntimeError where it is not."""
    runner._script_thread.join(timeout)
    look(runner, LOOK_S)


@pytest.fixture(scope="session", autouse=True)
def _as_a_server_runs_pages():
    """Run pages with the settings of our server, and compile each script once, as it does."""
    for name, value in STREAMLIT_CONFIG.items():
        config.set_option(name, value)
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        # which looks a thousand times a second whether a page is drawn
        patch.setattr(local_script_runner, "require_widgets_deltas", _wait)
        # nobody draws a page again once findings are evaluated; flags are of tests of their own
        patch.setattr(findings, "WAIT_S", PATIENCE_S)
        patch.setattr(flags, "IS_EVALUATED", False)
        yield


@pytest.fixture(scope="module")
def kept():
    """Keep what is evaluated for all reads of a module, which are of the same views."""
    read = LocalStore.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "read", lambda *of, **more: read(*of, **{"is_kept": True} | more))
        yield


@pytest.fixture(scope="module")
def visit(kept):  # noqa: ARG001 -- what tests read is what the pages do
    """Give what opens a page of a store and holds it to being sound.

    Answers are kept over the tests of a module, as a server keeps them: their keys name the store.
    """

    def visited(store, *page, is_sound=True, **params):
        app = opened(store, *page, **params)
        assert not app.exception, app.exception
        return assert_sound(app) if is_sound else app

    yield visited
    st.cache_data.clear()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def two_gpus(filled):
    """Give a database with two GPUs and a row that was rejected, to be copied."""
    since = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
    rows = pl.DataFrame({
        "source": "test", "cluster": "lab", "gpu_uuid": ["GPU-1", "GPU-2"],
        "node": ["n1", "\x1b[31mn2"], "memory_bytes": [151_000_000_000, None],
        "power_limit_w": [700.0, float("nan")], "valid_from_at": [since, None],
    })  # fmt: skip

    listed = Batch("gpus", rows, "test", "file", "1", [Reject(3, "14 fields", "a|b")])
    return filled("two_gpus", lambda store: store.load(listed))


@pytest.fixture
def database(here, two_gpus):
    """Give `goodput.duckdb` with two GPUs and a row that was rejected."""
    return Path(shutil.copyfile(two_gpus, here / "goodput.duckdb"))


@pytest.fixture(scope="session")
def built_empty(filled):
    """Give a database of which everything that is loaded was built, nothing; to be copied."""
    return filled("built_empty", LocalStore.build)


@pytest.fixture(scope="module")
def priced(filled, module_store):
    """Give three jobs of two accounts on two days, at 2 dollars, and a budget."""
    return module_store(copy_of=cost_file(filled, PRICED))


@pytest.fixture(scope="module")
def unpriced(filled, module_store):
    """Give the same jobs without any price."""
    return module_store(copy_of=cost_file(filled, {}))


@pytest.fixture
def cost(visit):
    return lambda store, **params: visit(store, "cost_statement", **params)


@pytest.fixture
def editable(filled, own_store):
    """Give jobs at 2 dollars whose prices a test may change."""
    return own_store(copy_of=cost_file(filled, PRICED))


@pytest.fixture(scope="session")
def two_teams(filled):
    """Give two hours of two teams, and of teams, users, nodes and runs with hostile names."""

    def fill(store):
        load_hostile(store)
        load(store, COBALTS)

    return filled("two_teams", fill)


teams = store_of("two_teams")


@pytest.fixture(scope="module")
def made(module_store):
    """Give an empty cluster for a world that all tests of a module read."""
    return Evidence(module_store())


@pytest.fixture
def evidence(store):
    """Give an empty cluster to load evidence into."""
    return Evidence(store)


@pytest.fixture(scope="session")
def two_weeks_file(filled):
    """Give a database of two weeks of two teams, of which the second is worse; to be copied."""
    return filled("two_weeks", lambda store: load_weeks(Evidence(store)))


two_weeks = store_of("two_weeks_file")


def settings_of(text):
    """Return the settings of a goodput.toml with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "goodput.toml"
        path.write_text(text)
        return read(path)


@pytest.fixture
def people_sign_in():
    """Let nobody in who did not sign in."""
    current.require_sign_in(is_required=True)
    usage._accounts.clear()
    yield
    current.require_sign_in(is_required=False)


@pytest.fixture
def as_identity(monkeypatch, people_sign_in):  # noqa: ARG001 -- else all is local
    """Give what makes an identity the one who opens pages, and acts there."""

    def identity(who):
        script = SimpleNamespace(user_info={current.USER_KEY: current.packed(who)})
        monkeypatch.setattr(current, "_script", lambda: script)

    monkeypatch.setattr(current, "current_address", lambda: "192.0.2.9")
    return identity


@pytest.fixture
def as_person(as_identity):
    """Give what makes Ada with a role, and all teams or some, the one who opens pages."""
    return lambda role, **more: as_identity(
        Identity(**{"name": "ada", "roles": frozenset({role}), **more})
    )


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    """Let no proxy of the tester's stand between."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
def hook():
    with web() as running:
        yield running


@pytest.fixture
def post():
    """Give a mail server without encryption."""
    with post_office() as running:
        yield running


@pytest.fixture
def secure_post(tls):
    """Give a mail server that wants STARTTLS, then user and password."""
    with post_office(tls_context=tls, require_starttls=True, auth_required=True) as running:
        yield running
