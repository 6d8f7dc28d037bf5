"""An ingest that is killed at any moment and repeated leaves the rows of an undisturbed one."""

import contextlib
import random
import shutil
import subprocess
import sys
import time
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.golden_cases import golden_path
from tests.recorded_session import SAMPLE

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.catalog import models
from goodput_queries.database import LocalStore

BAD_LINES = golden_path("dcgm/bad_lines_among_others/input.prom")
FILES = [
    *(SAMPLE / name for name in ("sacct.txt", "job_events.jsonl.gz", "nvml.jsonl.gz")),
    BAD_LINES,  # rejects must survive as well
]
KILLS = 3  # `python -m tests.fuzz.kills` kills hundreds
RUN = f"import sys; from {__name__} import read_all; read_all(sys.argv[1])"


def read_all(database):
    """Ingest in many transactions; return the rows of every base table, less when they came."""
    found = {}
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.closing(LocalStore(database, threads=1)) as store,
    ):
        print("open", flush=True)  # noqa: T201 -- for who kills it
        patch.setitem(files.parts.__kwdefaults__, "lines_per_part", 1000)
        ingest(store, "auto", FILES, ReadOptions(cluster="alpha", zone=ZoneInfo("UTC")))
        for table, model in models.base_tables().items():
            without = "exclude (sequence, loaded_at)" if table == "ingested" else ""
            columns = f"columns(* {without})::varchar"
            select = f"select {columns} from {model.qualified_name} order by all"
            found[table] = store.read(select).rows()
    return found


@pytest.mark.machine
def test_a_killed_and_repeated_ingest_leaves_rows_of_an_undisturbed_one(tmp_path, empty_database):
    chance = random.Random(20261120)  # noqa: S311 -- moments to kill at, not secrets
    database = shutil.copyfile(empty_database, tmp_path / "calm.duckdb")
    began = time.monotonic()
    expected = read_all(database)
    took_s = time.monotonic() - began

    killed = 0
    database = tmp_path / "killed.duckdb"
    for _ in range(KILLS):
        command = [sys.executable, "-c", RUN, str(database)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            if chance.random() < 0.8:
                assert process.stdout.readline() == "open\n"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0, took_s / 3))
            killed += process.poll() is None
            process.kill()

    assert killed >= KILLS // 2, f"only {killed} of {KILLS} were killed; the input is too small"
    assert sum(map(len, expected.values())) > 10_000
    assert expected["rejects"]
    assert read_all(database) == expected
