"""Replay from the Data page: which recordings there are, who may start one, and what ends it."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from tests.app.cost_page import texts

from goodput_app import replay_process
from goodput_app.access import current
from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Identity, Role
from goodput_app.dashboard import recordings
from goodput_app.settings import settings
from goodput_queries import audit
from goodput_queries.errors import GoodputError, NotPermittedError
from goodput_queries.storage.opening import MAGIC, MAGIC_OFFSET
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest


ADDRESS = "127.0.0.1"
# what stands for `goodput replay`: it prints its arguments' last one, and ends with its input
ANSWERS = (sys.executable, "-c", "import sys; print('http://x', flush=True); sys.stdin.read()")
FAILS = (sys.executable, "-c", "import sys; sys.exit('night: nothing in it has a time.')")


class Upload(io.BytesIO):
    """An uploaded file with the name that a browser gives it."""

    def __init__(self, name: str, content: bytes) -> None:
        super().__init__(content)
        self.name = name


@pytest.fixture
def store(database: Path) -> Iterator[LocalStore]:
    """Give a database with a few rows, which the Data page needs."""
    with contextlib.closing(LocalStore(database, threads=1)) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the configured folder, which has a recording, and links that lead out of it."""
    found = tmp_path / "recordings"
    found.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (found / "night").mkdir()
    (found / "out").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "goodput.toml").write_text(f'[replay]\nfolder = "{found}"\n')
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()
    yield found
    replay_process.end()


@pytest.fixture
def as_person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Give what makes somebody with a role the one who asks."""

    def person(role: Role, teams: frozenset[str] | None = None) -> None:
        packed = current.packed(Identity("ada", frozenset({role}), teams))
        script = SimpleNamespace(user_info={current.USER_KEY: packed})
        monkeypatch.setattr(current, "_script", lambda: script)

    monkeypatch.setattr(current, "current_address", lambda: "192.0.2.9")
    current.require_sign_in(is_required=True)
    yield person
    current.require_sign_in(is_required=False)


def until(holds: Callable[[], object]) -> None:
    for _ in range(500):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it does not happen")


def test_recordings_are_those_of_the_folder_and_no_other_path(
    folder: Path, store: LocalStore
) -> None:
    assert recordings.in_folder() == {"night": folder / "night"}
    for name in ("out", "../secret.txt", str(folder.parent / "secret.txt"), ""):
        with pytest.raises(GoodputError, match="is not a recording of the folder"):
            recordings.start(store, name, 10.0, ADDRESS)
    assert replay_process.current() is None


def test_who_may_not_is_refused_and_what_is_done_is_recorded(
    folder: Path,  # noqa: ARG001 -- asked for
    store: LocalStore,
    as_person: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        replay_process.start, "__kwdefaults__", {"folder": None, "command": ANSWERS}
    )
    for role in (Role.VIEWER, Role.FINANCE):
        as_person(role)
        with pytest.raises(NotAllowedError):
            recordings.start(store, "night", 10.0, ADDRESS)
    as_person(Role.OPERATOR, frozenset({"nlp"}))
    with pytest.raises(NotPermittedError):
        recordings.start(store, "night", 10.0, ADDRESS)

    as_person(Role.OPERATOR)
    recordings.start(store, "night", 10.0, ADDRESS)

    entry = audit.entries(store).filter(action="replay a recording")
    assert entry.select("who", "subject").rows() == [("ada", "night")]


def test_a_replay_answers_is_replaced_by_the_next_and_says_why_it_failed(tmp_path: Path) -> None:
    first = replay_process.start([tmp_path], "first", 10.0, ADDRESS, command=ANSWERS)
    until(lambda: first.is_ready)

    second = replay_process.start([tmp_path], "second", 10.0, ADDRESS, command=FAILS)
    until(lambda: second.failure)

    assert first.process.poll() is not None
    assert second.failure == "night: nothing in it has a time."
    assert not second.is_ready
    replay_process.end()
    assert replay_process.current() is None


def test_uploaded_files_are_removed_with_the_replay_and_databases_are_refused(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        replay_process.start, "__kwdefaults__", {"folder": None, "command": ANSWERS}
    )
    database = Upload("a.duckdb", b"\0" * MAGIC_OFFSET + MAGIC)
    with pytest.raises(GoodputError, match="a database is not uploaded"):
        recordings.start_uploaded(store, [database], 10.0, ADDRESS)
    files = [Upload("../../x.csv", b"one"), Upload("x.csv", b"two")]

    recordings.start_uploaded(store, files, 10.0, ADDRESS)

    running = replay_process.current()
    assert running is not None
    assert running.folder is not None
    paths = [argument for argument in running.process.args if argument.endswith("x.csv")]
    assert all(path.startswith(running.folder.name) and ".." not in path for path in paths)
    replay_process.end()
    assert not recordings.Path(running.folder.name).exists()


@pytest.mark.parametrize(("role", "is_offered"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
def test_operators_are_offered_the_recordings_on_the_data_page(
    folder: Path,  # noqa: ARG001 -- asked for
    visit: Callable[..., AppTest],
    store: LocalStore,
    as_person: Callable[..., None],
    role: Role,
    is_offered: bool,
) -> None:
    as_person(role)

    app = visit(store, "data_health")

    assert not app.exception, app.exception
    offered = [box.options for box in app.selectbox if box.key == "replay_recording"]
    assert offered == ([["night"]] if is_offered else [])
    assert ("It runs in a database of its own" in texts(app)) == is_offered
