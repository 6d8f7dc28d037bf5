"""The clock of a live demo runs: what its sources write appears at its time, and goes on later."""

from datetime import UTC, datetime, timedelta

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_synthetic import demo

NOW = datetime(2026, 11, 20, 12, 10, tzinfo=UTC)
FIRST_END_S, DRILL_S = 120, 900


def tick(store, sources, seconds):
    """Poll all sources as a collector does at a moment; return the rows that were new."""
    now = (NOW + timedelta(seconds=seconds)).replace(tzinfo=None)
    loaded = []
    for one in sources:
        reached = {one.origin: newest(store)} if one.reads == "telemetry-parquet" else {}
        loaded += [store.load(batch) for batch in one.source.poll(reached, now)]
    assert sum(one.rejects for one in loaded) == 0
    return sum(one.rows_new for one in loaded)


def newest(store):
    return store.read("select max(ts) as at from raw.gpu_samples")["at"][0].replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def live(tmp_path_factory, module_store):
    """Return a store with an hour of history, not built, and the sources of what follows."""
    folder, store = tmp_path_factory.mktemp("live"), module_store()

    def fill(_draft, steps, _on_progress):
        for step in steps:
            ingest(store, step.source, [step.path], step.options)
        _draft.touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "FLEET_HOURS", 1)
        patch.setattr(demo, "LIVE_HOURS", 1)
        patch.setattr(demo, "_fill", fill)
        path, sources = demo.live_demo(folder, gpus=64, now=NOW)
        yield folder, path, store, sources


def test_each_tick_brings_what_was_written_since_through_a_failing_job_and_a_restart(live):
    folder, path, store, sources = live
    states = "select max_by(state, observed_at) as state from raw.job_runs where job_name = $1"
    slowed = "select count(*) as n from raw.gpu_samples where clocks_event_reasons & 64 > 0"
    failed = "select count(*) as n from raw.job_events where event = 'failure' and ts > $1"

    assert NOW - timedelta(seconds=30) <= newest(store) <= NOW
    assert tick(store, sources, 10) > 0
    assert tick(store, sources, 10) == 0
    assert NOW < newest(store) <= NOW + timedelta(seconds=10)
    assert tick(store, sources, 40) >= 64  # every GPU is read each 30 s
    assert newest(store) > NOW + timedelta(seconds=10)

    tick(store, sources, 60)
    assert store.read(states, ["live-finetune-001"])["state"][0] == "RUNNING"
    before = store.read(slowed)["n"][0]
    tick(store, sources, FIRST_END_S + 20)
    assert store.read(states, ["live-finetune-001"])["state"][0] == "FAILED"
    assert store.read(failed, [NOW.replace(tzinfo=None)])["n"][0] > 0
    for seconds in range(FIRST_END_S + 300, FIRST_END_S + DRILL_S + 121, 300):
        tick(store, sources, seconds)
    assert store.read(slowed)["n"][0] > before

    last = newest(store)
    again, sources = demo.live_demo(folder, gpus=64, now=NOW + timedelta(minutes=30))
    assert again == path
    assert tick(store, sources, 1_500) > 0
    assert last < newest(store) <= NOW + timedelta(seconds=1_500)
