"""Writing processes of a lake, as many as a test wants: children of one that has imported all."""

import multiprocessing
import os
import sys
from dataclasses import replace
from types import ModuleType
from unittest import mock

from tests.queries.lake.conftest import readings

from goodput_lake.tables.lake import Lake
from goodput_lake.upkeep import compact
from goodput_queries.evidence.batch import Reject

WRITERS = multiprocessing.get_context("forkserver")
WRITERS.set_forkserver_preload(["tests.queries.lake.writers"])
PATIENCE_S = 60.0


def batch(number):
    """Return readings of two GPUs, and a row that was refused; each batch half a minute later."""
    found = readings(f"d{number}", (30 * number,))
    return replace(found, rejects=[Reject(number, "no number", "x")])


def _write(url, numbers, aws, answer):
    os.environ.update(aws)
    lake = Lake.open(url, cluster="west")
    if not numbers:
        compact(lake)
    answer.send(sum(not lake.append(batch(number)).is_repeat for number in numbers))


class Writer:
    """A process that appends batches to a lake; without any it compacts the lake."""

    def __init__(self, url, numbers, aws=None):
        """Start it."""
        self._answer, theirs = WRITERS.Pipe()
        self._process = WRITERS.Process(target=_write, args=(url, numbers, aws or {}, theirs))
        with mock.patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):
            self._process.start()  # else it would run what a test of a page left there as a script
        theirs.close()

    def new_loads(self):
        """Wait until it ends; return how many batches it found new."""
        assert self._answer.poll(PATIENCE_S)
        found = self._answer.recv()
        self._process.join()
        return found

    def kill(self, after_s):
        """Kill it after some time; return whether it was still writing."""
        self._process.join(after_s)
        was_writing = self._process.is_alive()
        self._process.kill()
        self._process.join()
        return was_writing


def assert_whole(lake, count):
    """Assert that each of so many batches is there once, with its refused row."""
    loads = lake.commits("gpu_samples")
    expected = sorted(f"d{number} of west" for number in range(count))
    assert sorted(one.digest for one in loads) == expected
    rows = lake.rows("gpu_samples", columns=["gpu_uuid", "ts"]).read_all()
    assert rows.num_rows == 2 * count
    assert rows.group_by(["gpu_uuid", "ts"]).aggregate([]).num_rows == 2 * count
    lines = lake.rows("rejects", columns=["line"]).read_all()["line"].to_pylist()
    assert sorted(lines) == list(range(count))
