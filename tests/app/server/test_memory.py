"""Memory that a build took goes back: the environment of the shipped unit makes it so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[3] / "deploy/systemd/goodput.service"
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_server_at_rest_gives_its_memory_back():
    lines = [line.removeprefix("Environment=") for line in UNIT.read_text().splitlines()]
    environment = dict(line.split("=", 1) for line in lines if "_MALLOC_CONF=" in line)
    done = subprocess.run(
        [sys.executable, "-c", GROWN_AND_FREED],
        env=os.environ | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    grown, left = map(int, done.stdout.split())
    assert len(environment) == 2
    assert left <= grown / 2
    assert done.stderr == ""  # an allocator that cannot read its settings says so
