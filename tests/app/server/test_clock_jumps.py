"""A server whose clock goes forth and back by an hour: what it plans, shows and sends is of now."""

import contextlib
import json
import shutil
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.app.page_session import page_session
from tests.app.server.drill_site import Site
from tests.until import until

from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries.check import check
from goodput_queries.database import LocalStore, open_store
from goodput_queries.scope import Scope, epoch_ms

HOUR_S = 3_600
LOOK_S = 30.0  # of the notifier
PAGES = ("", "findings", "data")
SETTINGS = """
[[collect]]
source = "job-events"
folder = "events"
interval_s = 0.5

[[notify]]
to = "webhook"
url = "{}"
"""
LIES_AHEAD = """
    select 'findings' as place, rule as what from marts.findings
        where greatest(since_at, until_at) > $1
    union all select 'source_status', origin from state.source_status
        where greatest(asked_at, answered_at) > $1
    union all select 'notifications', event from state.notifications where next_attempt_at > $1
"""


class Jumping:
    """A site whose server, and the job on the same machine, have a clock that can be set."""

    def __init__(self, site, folder, library):
        self.site, self._offset_s, self._step = site, 0, 0
        self._events, self._file = folder / "events" / "job.jsonl", folder / "clock"
        self.set_to(0)
        self.environment = {
            "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }  # fmt: skip

    def set_to(self, offset_s):
        """Set the clock to so many seconds from the right time."""
        self._offset_s = offset_s
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{offset_s:+d}")
        draft.replace(self._file)

    def now(self):
        """Return the time by that clock, naive UTC."""
        now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        return now + timedelta(seconds=self._offset_s)

    def ahead(self):
        """Return what the server plans, or shows of the last day, that lies in the future."""
        now = self.now() + timedelta(minutes=1)  # for what is evaluated meanwhile
        day = Scope(from_ms=epoch_ms(now - timedelta(days=1)), to_ms=epoch_ms(now))
        with contextlib.closing(open_store(self.site.database)) as store:
            return store.read(LIES_AHEAD, [now], scope=day).rows()

    def step(self):
        """Let the job do a step; wait until it is stored."""
        self._step += 1
        line = {"v": 1, "event": "step", "run_id": "9001", "rank": 0, "host": "n1", "dur_s": 0.5,
                "step": self._step, "ts": time.time() + self._offset_s}  # fmt: skip
        with self._events.open("a") as file:
            file.write(json.dumps(line) + "\n")
        until(lambda: self.site.count("job_events") == self._step, "the step is stored")

    def fail(self, *, is_over=False):
        """Let a source that another process polls fail again, or answer."""
        now = self.now()
        with contextlib.closing(open_store(self.site.database)) as store:
            known = live_status.read(store, Status("slurm", "sacct", now, 60.0))
            live_status.write(
                store, [known.answered(now) if is_over else known.failed(now, "away")]
            )


@pytest.fixture
def jumping(tmp_path, empty_database, hook):
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("libfaketime is not installed (apt-get install libfaketime)")
    shutil.copyfile(empty_database, tmp_path / "fleet.duckdb")
    (tmp_path / "events").mkdir()
    (tmp_path / "goodput.toml").write_text(SETTINGS.format(hook.url))
    with contextlib.ExitStack() as stack:
        yield Jumping(Site(tmp_path, stack), tmp_path, found[0])


def sent(hook):
    """Return event and subject of each finding that was sent."""
    bodies = [json.loads(body) for _, body in hook.posts]
    return [(body["event"], one["subject"]) for body in bodies for one in body["findings"]]


@pytest.mark.slow
@pytest.mark.machine
def test_nothing_lies_ahead_or_is_sent_twice_when_the_clock_jumps(jumping, hook):
    site = jumping.site
    site.serve(**jumping.environment)
    jumping.step()
    jumping.fail()
    until(lambda: sent(hook), "the failure is sent")

    for offset_s in (HOUR_S, 0, -HOUR_S, 0):
        jumping.set_to(offset_s)
        jumping.step()
        jumping.fail()
        time.sleep(LOOK_S)
        with page_session(site.server.url) as session:
            assert [session.draw(page)[1] for page in PAGES] == [[]] * len(PAGES)
        assert site.server.get("/metrics").status_code == 200
        assert jumping.ahead() == [], offset_s

    jumping.fail(is_over=True)
    until(lambda: len(sent(hook)) > 1, "the end is sent")
    assert site.server.end(signal.SIGTERM) == 0
    said = site.server.process.stderr.read()
    assert "Traceback" not in said, said
    assert sent(hook) == [("finding.open", "slurm sacct"), ("finding.resolved", "slurm sacct")]
    with contextlib.closing(LocalStore(site.database)) as store:
        assert check(store)["violations"].sum() == 0
