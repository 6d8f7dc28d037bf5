"""An ingest that is killed at any moment and repeated leaves the rows of an undisturbed one."""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore

SAMPLE = Path(__file__).parents[3] / "sample_data" / "h200x4-a"
BAD_LINES = Path(__file__).parents[1] / "golden/dcgm/bad_lines_among_others/input.prom"
FILES = [
    *(SAMPLE / name for name in ("sacct.txt", "job_events.jsonl.gz", "nvml.jsonl.gz")),
    BAD_LINES,  # rejects must survive as well
]
KILLS = 3  # `python -m tests.fuzz.kills` kills hundreds
RUN = """
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore

files.parts.__kwdefaults__["lines_per_part"] = 1000  # many transactions
store = LocalStore(sys.argv[1], threads=1)
print("open", flush=True)
options = ReadOptions(cluster="alpha", zone=ZoneInfo("UTC"))
ingest(store, "auto", list(map(Path, sys.argv[2:])), options)
store.close()
print("done", flush=True)
"""


def rows(database):
    """Return the rows of every base table, less when and in what order they came."""
    found = {}
    with contextlib.closing(LocalStore(database)) as store:
        for table, model in models.base_tables().items():
            without = "exclude (sequence, loaded_at)" if table == "ingested" else ""
            select = (
                f"select columns(* {without})::varchar from {model.qualified_name} order by all"
            )
            found[table] = store.read(select).rows()
    return found


def start(database):
    command = [sys.executable, "-c", RUN, str(database), *map(str, FILES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.machine
def test_a_killed_and_repeated_ingest_leaves_the_rows_of_an_undisturbed_one(
    tmp_path, empty_database
):
    chance = random.Random(20261120)  # noqa: S311 -- moments to kill at, not secrets
    shutil.copyfile(empty_database, tmp_path / "calm.duckdb")
    with start(tmp_path / "calm.duckdb") as calm:
        assert calm.stdout is not None
        assert calm.stdout.readline() == "open\n"
        opened = time.monotonic()
        assert calm.wait() == 0
    took_s = time.monotonic() - opened

    killed = 0
    database = tmp_path / "killed.duckdb"
    for _ in range(KILLS):
        with start(database) as process:
            assert process.stdout is not None
            if chance.random() < 0.8:
                assert process.stdout.readline() == "open\n"
            try:
                process.wait(chance.uniform(0, took_s / 3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
    with start(database) as last:
        assert last.wait() == 0

    if killed < KILLS // 2:
        pytest.fail(f"only {killed} of {KILLS} runs were killed; the input is too small")
    expected = rows(tmp_path / "calm.duckdb")
    assert sum(map(len, expected.values())) > 10_000
    assert expected["rejects"]
    assert rows(database) == expected
