"""Memory that was used goes back: a server that once built a ledger is not to hold it for good."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from goodput_app import allocators
from goodput_app.cli import entry, main

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


NAMES = {
    allocators.TUNABLES,
    allocators.PRELOAD,
    allocators.OF_JEMALLOC,
    allocators.MARK,
    *allocators.LIBRARIES,
}
BY_A_PERSON = {allocators.PRELOAD: ""}  # is to be no other allocator
of_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="asks what glibc alone is told"
)
of_jemalloc = pytest.mark.skipif(
    sys.platform != "linux"
    or platform.machine() != "x86_64"
    or not any(Path(folder, allocators.JEMALLOC).exists() for folder in allocators.FOLDERS),
    reason="asks what is told where the system has libjemalloc2",
)


def _told(**told: str) -> dict[str, str]:
    """Return what the command `goodput` has been told when it runs, and what it has loaded."""
    asked = """
import json, os
from pathlib import Path
from goodput_app import allocators, cli, start

def say():
    maps = Path("/proc/self/maps")
    began = Path("/proc/self/environ")
    print(json.dumps(dict(os.environ) | {
        "loaded": maps.read_text() if maps.exists() else "",
        "began": began.read_text() if began.exists() else "",
    }))

cli.main = say
start.main()"""
    left = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", asked], env=left | told, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""  # an allocator that cannot read its settings says so
    said = json.loads(done.stdout)
    return {name: said[name] for name in NAMES | {"loaded", "began"} if name in said}


@of_jemalloc
def test_the_command_begins_with_the_jemalloc_of_the_system() -> None:
    told = _told()

    assert allocators.JEMALLOC in told["loaded"]
    assert f"{allocators.OF_JEMALLOC}={allocators.DECAY}" in told["began"]


@of_jemalloc
def test_what_the_command_starts_is_given_no_other_allocator() -> None:
    told = _told()

    assert f"{allocators.PRELOAD}=/" in told["began"]
    assert told.keys() == {*allocators.LIBRARIES, "loaded", "began"}


@of_glibc
def test_without_jemalloc_glibc_keeps_more_small_pieces() -> None:
    told = _told(**BY_A_PERSON)

    assert allocators.JEMALLOC not in told["loaded"]
    assert told[allocators.PRELOAD] == ""
    assert f"{allocators.TUNABLES}=glibc.malloc.tcache_count=1000" in told["began"]
    assert allocators.TUNABLES not in told


@of_glibc
@pytest.mark.parametrize(
    ("told", "then"),
    [
        ("glibc.malloc.tcache_count=7", "glibc.malloc.tcache_count=7"),
        ("glibc.malloc.arena_max=2", "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=1000"),
    ],
)
def test_what_a_person_tells_glibc_stays(told: str, then: str) -> None:
    said = _told(**BY_A_PERSON, **{allocators.TUNABLES: told})

    assert said[allocators.TUNABLES] == then


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return what the command ran in this process."""
    ran: list[bool] = []
    monkeypatch.setattr(main, "main", lambda: ran.append(True))
    return ran


def test_a_process_that_began_again_does_not_do_so_again_whatever_was_taken_from_it(
    monkeypatch: pytest.MonkeyPatch, ran: list[bool]
) -> None:
    monkeypatch.setattr(allocators, "_is_begun_with_it", True)
    monkeypatch.delenv(allocators.PRELOAD, raising=False)
    monkeypatch.delenv(allocators.TUNABLES, raising=False)
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("begun again"))

    entry.main()

    assert ran == [True]


def test_a_process_that_cannot_begin_again_runs_as_it_is(
    monkeypatch: pytest.MonkeyPatch, ran: list[bool]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(allocators, "to_begin_with", lambda: {allocators.MARK: ""})
    monkeypatch.setattr(os, "execve", refused)
    before = dict(os.environ)

    entry.main()

    assert ran == [True]
    assert dict(os.environ) == before
