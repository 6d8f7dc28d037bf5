"""The banner of a replay: its clock and what its controls do."""

from datetime import timedelta

import pytest
from tests.app.conftest import opened

from goodput_app.process.replay import use_replay
from goodput_ingest.replay.clock import ReplayClock
from goodput_ingest.replay.feed import ReplayFeed
from goodput_ingest.replay.recording import Recording


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
