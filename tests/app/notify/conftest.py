"""A built database without evidence, whose findings are sources that do not answer."""

from datetime import UTC, datetime

import pytest
from tests.app.receivers import Clock

from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status

SOURCE, ORIGIN = "slurm", "sacct"


@pytest.fixture
def clock():
    """Give a clock that begins now, by which sources are late."""
    return Clock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def store(own_store, built_empty):
    return own_store(copy_of=built_empty)


def fail(store, origin=ORIGIN):
    """Let a source not answer: a finding of severity ticket."""
    now = datetime.now(UTC).replace(tzinfo=None)
    failing = Status(SOURCE, origin, now, 60.0)
    live_status.write(store, [failing.failed(now, "it is away")])


def mend(store, origin=ORIGIN):
    """Let a source answer again: its finding closes."""
    now = datetime.now(UTC).replace(tzinfo=None)
    live_status.write(store, [Status(SOURCE, origin, now, 60.0).answered(now)])
