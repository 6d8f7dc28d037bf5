"""A built database without evidence, whose findings are sources that do not answer."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status

SOURCE, ORIGIN = "slurm", "sacct"


@dataclass
class Clock:
    """A clock that is set by hand; it begins now, by which sources are late."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def now(self):
        """Return the time that was set."""
        return self.at

    def pass_s(self, seconds):
        """Let time pass."""
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="session")
def built_empty(new_store):
    """Give a database of which everything that is loaded was built: nothing."""
    store = new_store()
    store.build()
    with store.cursor() as cursor:
        cursor.execute("checkpoint")
    store.close()
    return Path(store.path)


@pytest.fixture
def store(new_store, built_empty):
    with contextlib.closing(new_store(copy_of=built_empty)) as opened:
        yield opened


def fail(store, origin=ORIGIN):
    """Let a source not answer: a finding of severity ticket."""
    now = datetime.now(UTC).replace(tzinfo=None)
    failing = Status(SOURCE, origin, now, 60.0)
    live_status.write(store, [failing.failed(now, "it is away")])


def mend(store, origin=ORIGIN):
    """Let a source answer again: its finding closes."""
    now = datetime.now(UTC).replace(tzinfo=None)
    live_status.write(store, [Status(SOURCE, origin, now, 60.0).answered(now)])
