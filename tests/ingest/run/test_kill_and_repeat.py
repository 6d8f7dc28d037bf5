"""An ingest that is killed at any moment and repeated leaves the rows of an undisturbed one."""

import contextlib
import json
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

GOLDEN = Path(__file__).parents[1] / "golden"
KILLS = 3  # `python -m tests.fuzz.kills` kills hundreds
RUN = """
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore

files.parts.__kwdefaults__["lines_per_part"] = 150  # many transactions
store = LocalStore(sys.argv[1], threads=1)
print("open", flush=True)
ingest(store, "auto", [Path(sys.argv[2])], ReadOptions(cluster="alpha", zone=ZoneInfo("UTC")))
store.close()
print("done", flush=True)
"""


def repeat_lines(case, copies, shift):
    """Return the lines of a golden input again and again, each time moved to be new rows."""
    lines = []
    (given,) = (GOLDEN / case).glob("input.*")
    for line in given.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            lines.append(line)  # a cut line stays one: rejects must survive as well
            continue
        if "gpus" in record:
            lines.append(line)
            continue
        for copy in range(copies):
            shift(record, copy)
            lines.append(json.dumps(record, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def inputs(folder):
    """Write a few megabytes of several sources."""

    def later(name, seconds):
        def shift(record, copy):
            record[name] += seconds * (copy > 0)

        return shift

    def next_operation(record, copy):
        perf = record.get("coll_perf") or record["p2p_perf"]
        perf["coll_sn" if "coll_perf" in record else "p2p_sn"] += 1_000 * (copy > 0)

    folder.mkdir()
    (folder / "nvml.jsonl").write_text(
        repeat_lines("nvml/four_gpus_with_incomplete_gpm", 60, later("t", 1000.0))
    )
    (folder / "events.jsonl").write_text(
        repeat_lines("job_events/killed_rank_and_restart", 60, later("ts", 1000.0))
    )
    (folder / "vm.log").write_text(
        repeat_lines("nccl_inspector/verbose_and_plain_of_two_versions", 120, next_operation)
    )
    message = "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=python, MMU Fault"
    (folder / "dmesg").write_text(
        "".join(
            f"[Tue Nov 18 {i // 60 % 24:02}:{i % 60:02}:00 2025] {message}\n" for i in range(900)
        )
    )
    return folder


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


def start(database, folder):
    command = [sys.executable, "-c", RUN, str(database), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.machine
def test_a_killed_and_repeated_ingest_leaves_the_rows_of_an_undisturbed_one(
    tmp_path, empty_database
):
    chance = random.Random(20261120)  # noqa: S311 -- moments to kill at, not secrets
    folder = inputs(tmp_path / "evidence")
    shutil.copyfile(empty_database, tmp_path / "calm.duckdb")
    began = time.monotonic()
    with start(tmp_path / "calm.duckdb", folder) as calm:
        assert calm.stdout is not None
        assert calm.stdout.readline() == "open\n"
        opened = time.monotonic()
        assert calm.wait() == 0
    took_s = time.monotonic() - opened
    assert opened > began

    killed = 0
    database = tmp_path / "killed.duckdb"
    for _ in range(KILLS):
        with start(database, folder) as process:
            assert process.stdout is not None
            if chance.random() < 0.8:
                assert process.stdout.readline() == "open\n"
            try:
                process.wait(chance.uniform(0, took_s / 3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
    with start(database, folder) as last:
        assert last.wait() == 0

    if killed < KILLS // 2:
        pytest.fail(f"only {killed} of {KILLS} runs were killed; the input is too small")
    expected = rows(tmp_path / "calm.duckdb")
    assert sum(map(len, expected.values())) > 10_000
    assert rows(database) == expected
