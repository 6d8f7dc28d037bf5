"""A replay shows a recording in the order of time, and ends where a plain ingest ends."""

import contextlib
import shutil
from datetime import UTC, timedelta
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from tests.queries.loaders import Evidence

from goodput_app.replay import replaying
from goodput_ingest.live.config import Collector
from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.replay.clock import ReplayClock
from goodput_ingest.replay.feed import ReplayFeed
from goodput_ingest.replay.recording import Recording
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

LEDGER = """select
        cluster, gpu_uuid, gpu_instance, attempt_key, category, phase, start_ms, end_ms, gpu_ms
    from marts.ledger_pieces order by all"""
RUNNING = "select job_id, state, end_at from raw.job_runs where start_at is not null order by all"


@pytest.fixture(scope="module")
def recording(recorded):
    return Recording(recorded)


@pytest.fixture
def replayed(new_store):
    with contextlib.closing(new_store()) as opened:
        yield opened


@pytest.fixture
def steady():
    """Give a monotonic clock that a test sets."""
    return SimpleNamespace(s=0.0)


@pytest.fixture
def feed(recording, steady):
    clock = ReplayClock(recording.begins_at, recording.ends_at, speed=10, steady_s=lambda: steady.s)
    return ReplayFeed(recording, clock, "session")


def poll(feed, store):
    (outcome,) = Collection([Collector(feed, "replay")], Held(store)).ask_once()
    assert outcome.error is None


def latest(store):
    return store.read("select max(ts) from raw.gpu_samples").item()


def test_nothing_of_the_future_is_known(feed, replayed, steady):
    steady.s += 30
    poll(feed, replayed)

    now = feed.clock.now()
    assert now == feed.clock.begins_at + timedelta(seconds=300)
    assert now - timedelta(seconds=10) < latest(replayed) <= now
    states = replayed.read(RUNNING)
    assert states["end_at"].drop_nulls().to_list() == [
        at for at in states["end_at"].drop_nulls() if at <= now
    ]
    assert "RUNNING" in states["state"].to_list()


def test_a_paused_replay_brings_nothing(feed, replayed, steady):
    steady.s += 30
    poll(feed, replayed)
    feed.clock.pause()
    before = latest(replayed)
    steady.s += 100
    poll(feed, replayed)
    assert latest(replayed) == before


def test_the_ledger_at_the_end_is_that_of_the_recording(feed, replayed, recorded, steady):
    while not feed.clock.is_at_end:  # in some steps, with a build after each
        steady.s += 60
        poll(feed, replayed)
        replayed.build()

    assert replayed.read(LEDGER).equals(recorded.read(LEDGER))


def test_going_back_shows_what_was_known_then(feed, replayed, steady, new_store):
    steady.s += 3600
    poll(feed, replayed)
    at = feed.clock.begins_at + timedelta(seconds=900)
    feed.clock.pause()
    feed.seek(replayed, at)
    poll(feed, replayed)
    replayed.build()

    with contextlib.closing(new_store()) as fresh:
        clock = ReplayClock(feed.clock.begins_at, feed.clock.ends_at)
        clock.pause()
        clock.set(at)
        poll(ReplayFeed(feed.recording, clock, "session"), fresh)
        fresh.build()
        assert replayed.read(LEDGER).equals(fresh.read(LEDGER))
        assert replayed.read(LEDGER)["end_ms"].max() <= at.replace(tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    "digest", [None, pytest.param("of an older version", marks=pytest.mark.machine)]
)
def test_a_recorded_database_is_read_and_not_changed(filled, tmp_path, digest):
    recorded = filled("recorded", lambda store: Evidence(store).state("*", "up", 0, 600))
    path = Path(shutil.copyfile(recorded, tmp_path / "fleet.duckdb"))
    if digest:
        with duckdb.connect(str(path)) as older:
            older.execute("update raw.catalog set digest = $1", [digest])
    content = path.read_bytes()

    with replaying([path], ReadOptions(), speed=100) as replay:
        assert replay.feed.recording.begins_at is not None
        assert list(tmp_path.iterdir()) == [path]

    assert path.read_bytes() == content


@pytest.mark.parametrize("speed", [0.2, 101, float("nan")])
def test_a_speed_that_cannot_be_is_refused(feed, speed):
    with pytest.raises(IngestError, match=r"expected 0\.25 to 100"):
        feed.clock.set_speed(speed)
