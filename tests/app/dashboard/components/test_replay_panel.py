"""Replay from the Data page: which there are, who starts one, what ends it, and its banner."""

import contextlib
import io
import sys
from datetime import timedelta

import pytest
from tests.app.conftest import opened
from tests.until import until

from goodput_app import replay_process
from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Role
from goodput_app.dashboard import recordings
from goodput_app.process.replay import use_replay
from goodput_ingest.replay.clock import ReplayClock
from goodput_ingest.replay.feed import ReplayFeed
from goodput_ingest.replay.recording import Recording
from goodput_queries import audit
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError, NotPermittedError
from goodput_queries.storage.opening import MAGIC, MAGIC_OFFSET

ADDRESS, DEFAULTS = "127.0.0.1", "__kwdefaults__"
# what stands for `goodput replay`: it prints its arguments' last one, and ends with its input
ANSWERS = (sys.executable, "-c", "import sys; print('http://x', flush=True); sys.stdin.read()")
FAILS = (sys.executable, "-c", "import sys; sys.exit('night: nothing in it has a time.')")


def upload(name, content):
    """Return an uploaded file with the name that a browser gives it."""
    file = io.BytesIO(content)
    file.name = name
    return file


@pytest.fixture
def store(database):
    """Give a database with a few rows, which the Data page needs."""
    with contextlib.closing(LocalStore(database, threads=1)) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path, configured):
    """Give the configured folder, which has a recording, and links that lead out of it."""
    found = tmp_path / "recordings"
    found.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (found / "night").mkdir()
    (found / "out").symlink_to(tmp_path / "secret.txt")
    configured(f'[replay]\nfolder = "{found}"\n')
    yield found
    replay_process.end()


def test_recordings_are_those_of_the_folder_and_no_other_path(folder, store):
    assert recordings.in_folder() == {"night": folder / "night"}
    for name in ("out", "../secret.txt", str(folder.parent / "secret.txt"), ""):
        with pytest.raises(GoodputError, match="is not a recording of the folder"):
            recordings.start(store, name, 10.0, ADDRESS)
    assert replay_process.current() is None


@pytest.mark.usefixtures("folder")
def test_who_may_not_is_refused_and_what_is_done_is_recorded(store, as_person, monkeypatch):
    monkeypatch.setattr(replay_process.start, DEFAULTS, {"folder": None, "command": ANSWERS})
    for role in (Role.VIEWER, Role.FINANCE):
        as_person(role)
        with pytest.raises(NotAllowedError):
            recordings.start(store, "night", 10.0, ADDRESS)
    as_person(Role.OPERATOR, teams=frozenset({"nlp"}))
    with pytest.raises(NotPermittedError):
        recordings.start(store, "night", 10.0, ADDRESS)

    as_person(Role.OPERATOR)
    recordings.start(store, "night", 10.0, ADDRESS)

    entry = audit.entries(store).filter(action="replay a recording")
    assert entry.select("who", "subject").rows() == [("ada", "night")]


def test_a_replay_answers_is_replaced_by_the_next_and_says_why_it_failed(tmp_path):
    first = replay_process.start([tmp_path], "first", 10.0, ADDRESS, command=ANSWERS)
    until(lambda: first.is_ready, "it is ready")

    second = replay_process.start([tmp_path], "second", 10.0, ADDRESS, command=FAILS)
    until(lambda: second.failure, "it fails")

    assert first.process.poll() is not None
    assert second.failure == "night: nothing in it has a time."
    assert not second.is_ready
    replay_process.end()
    assert replay_process.current() is None


def test_uploaded_files_are_removed_with_the_replay_and_databases_are_refused(store, monkeypatch):
    monkeypatch.setattr(replay_process.start, DEFAULTS, {"folder": None, "command": ANSWERS})
    database = upload("a.duckdb", b"\0" * MAGIC_OFFSET + MAGIC)
    with pytest.raises(GoodputError, match="a database is not uploaded"):
        recordings.start_uploaded(store, [database], 10.0, ADDRESS)
    files = [upload("../../x.csv", b"one"), upload("x.csv", b"two")]

    recordings.start_uploaded(store, files, 10.0, ADDRESS)

    running = replay_process.current()
    paths = [argument for argument in running.process.args if argument.endswith("x.csv")]
    assert all(path.startswith(running.folder.name) and ".." not in path for path in paths)
    replay_process.end()
    assert not recordings.Path(running.folder.name).exists()


@pytest.fixture
def replay(capture):
    recording = Recording(capture)
    clock = ReplayClock(recording.begins_at, recording.ends_at)
    clock.pause()
    clock.set(recording.ends_at - timedelta(minutes=2))
    feed = ReplayFeed(recording, clock, "last [night](http://x)")
    use_replay(feed)
    yield feed
    use_replay(None)


def test_the_banner_names_the_recording_and_its_controls_set_the_clock(capture, replay):
    at = replay.clock.now()
    app = opened(capture, "one_run")

    assert "Replay** of last \\[night\\]" in app.markdown[0].value
    assert f"{at:%F %T} UTC" in [caption.value for caption in app.caption]
    app.button(key="replay_forward").click().run()
    assert replay.clock.now() == at + timedelta(minutes=1)
    app.button(key="replay_toggle").click()
    app.selectbox(key="replay_speed").select(50.0).run()
    assert (replay.clock.is_paused, replay.clock.speed) == (False, 50)
