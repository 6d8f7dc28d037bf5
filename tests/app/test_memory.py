"""Memory that was used goes back: a server that once built a ledger is not to hold it for good."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

from goodput_app import allocators, cli, start

GROWN_AND_FREED = """
import time
import goodput_app, duckdb, polars as pl

def held_mb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))

connection = duckdb.connect()
connection.execute("create temp table many as select random() as a from range(20_000_000)")
frame = pl.DataFrame({"a": pl.Series([1.5]).new_from_index(0, 20_000_000)}).sort("a")
grown = held_mb()
connection.execute("drop table many")
del frame
deadline = time.monotonic() + 60
while held_mb() > grown / 2 and time.monotonic() < deadline:
    time.sleep(0.5)
print(grown, held_mb())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_process_at_rest_gives_its_memory_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWN_AND_FREED], capture_output=True, text=True, check=True
    )

    grown, left = map(int, done.stdout.split())
    assert left <= grown / 2
    assert done.stderr == ""  # an allocator that cannot read its settings says so


def test_settings_of_the_person_who_starts_it_stay() -> None:
    told = "dirty_decay_ms:0"
    done = subprocess.run(
        [sys.executable, "-c", "import goodput_app, os; print(os.environ['_RJEM_MALLOC_CONF'])"],
        env=os.environ | {"_RJEM_MALLOC_CONF": told},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == told


NAMES = {allocators.TUNABLES, *allocators.LIBRARIES}
of_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="asks what glibc alone is told"
)


def _told(**told: str) -> dict[str, str]:
    """Return what the command `goodput` has told its allocators when it runs; fails if too late."""
    asked = """
import json, os
from goodput_app import allocators, cli, start

def say():
    assert allocators.is_told()
    print(json.dumps(dict(os.environ)))

cli.main = say
start.main()"""
    left = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", asked], env=left | told, capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    return {name: said[name] for name in NAMES if name in said}


@of_glibc
def test_the_command_begins_with_what_its_allocators_are_to_be_told() -> None:
    told = _told()

    assert told.keys() == NAMES
    assert told[allocators.TUNABLES] == "glibc.malloc.tcache_count=1000"


@of_glibc
@pytest.mark.parametrize(
    ("told", "then"),
    [
        ("glibc.malloc.tcache_count=7", "glibc.malloc.tcache_count=7"),
        ("glibc.malloc.arena_max=2", "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=1000"),
    ],
)
def test_what_a_person_tells_glibc_stays(told: str, then: str) -> None:
    assert _told(**{allocators.TUNABLES: told})[allocators.TUNABLES] == then


def test_a_process_that_was_told_all_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "is_told", lambda: True)
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("begun again"))
    monkeypatch.setattr(cli, "main", lambda: None)

    start.main()


def test_a_process_that_cannot_begin_again_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(allocators, "is_told", lambda: False)
    monkeypatch.setattr(os, "execv", refused)
    monkeypatch.setattr(cli, "main", lambda: ran.append(True))

    start.main()

    assert ran == [True]
