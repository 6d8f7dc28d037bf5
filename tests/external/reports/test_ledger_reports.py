"""Cases of ledger defects and their scripts: each gives what the README beside them expects."""

import contextlib
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.external.reports.repros import NEEDED, REPROS, gpu_s

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries import database
from goodput_queries import ledger as ledgers
from goodput_queries.check import check
from goodput_queries.scope import Scope

pytestmark = NEEDED
MOVED = {"goodput_queries.storage.store": database}  # since the scripts were written
NO_CASES = {"README.md", "field", "run.py", "smalllib.py"}


def test_each_case_has_a_test():
    tests = Path(__file__).read_text("utf-8")
    cases = {path.name for path in REPROS.iterdir()} - NO_CASES

    assert {case for case in cases if f'"{case}"' not in tests} == set()


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a maker of a copy of a case, whose `make.py` has run with these arguments."""

    def copy(case, *arguments):
        folder = tmp_path_factory.mktemp("case") / case
        shutil.copytree(REPROS / case, folder, copy_function=shutil.copyfile)
        subprocess.run([sys.executable, "-S", "make.py", *arguments], cwd=folder, check=True)
        return folder

    return copy


# cases of inventory, accounting and job events, each as a cluster: its folder and its arguments
OF_EVENTS = {
    "late -0.1": ("2-late-line", "-0.1"),
    "late 12": ("2-late-line", "12"),
    "in order": ("3-step-start-tie", "1"),
    "shuffled": ("3-step-start-tie", "1", "shuffled"),
}


@pytest.fixture(scope="module")
def built(module_store, copied):
    """Give a database with these cases, that of two places and those of readings, built."""
    store = module_store()
    for name, case in OF_EVENTS.items():
        folder = copied(*case)
        for file in ("inventory.csv", "sacct.txt"):
            text = (folder / file).read_text().replace("GPU-", f"GPU-{name}-")
            text = re.sub(r"^c([,\x1f])", rf"{name}\1", text, flags=re.MULTILINE)
            (folder / file).write_text(text)
        ingest(store, "inventory", [folder / "inventory.csv"], ReadOptions())
        ingest(store, "slurm", [folder / "sacct.txt"], ReadOptions())
        ingest(store, "job-events", [folder / "events.jsonl"], ReadOptions(cluster=name))
    folder = copied("1-interval")
    for name in ("slow", "fast"):
        ingest(store, "inventory", [folder / f"{name}.csv"], ReadOptions())
        ingest(store, "slurm", [folder / f"{name}.sacct"], ReadOptions())
        ingest(store, "dcgm", [folder / f"{name}.prom"], ReadOptions(cluster=name))
    ingest(store, "dcgm", [REPROS / "7-dcgm-only" / "dcgm.prom.gz"], ReadOptions(cluster="c"))
    twice = REPROS / "mig-counted-twice"
    ingest(store, "dcgm", [twice / "in1324.prom"], ReadOptions())
    ingest(store, "auto", [twice / "in1320.zip"], ReadOptions(cluster="lab"))
    store.build()
    return store


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """Return a runner of a script that builds small clusters: its store and its clusters."""
    with contextlib.ExitStack() as stores:

        def run(script):
            folder = tmp_path_factory.mktemp("scripts") / "repros"
            folder.mkdir()
            for file in REPROS.glob("*.py"):
                shutil.copyfile(file, folder / file.name)
            with pytest.MonkeyPatch.context() as patch:
                patch.syspath_prepend(folder)
                patch.setattr("tempfile.tempdir", str(folder))
                patch.setattr(ledgers, "ledger", lambda *_, **__: pl.DataFrame())  # it prints them
                for name, module in MOVED.items():
                    patch.setitem(sys.modules, name, module)
                found = runpy.run_path(str(folder / script))
            for name in ("run", "smalllib"):
                sys.modules.pop(name, None)
            return stores.enter_context(contextlib.closing(found["s"]))

        yield run


small, late_and_early, gaps = (
    pytest.fixture(scope="module")(lambda scripted, script=script: scripted(script))
    for script in ("small.py", "small2.py", "small4.py")
)
BY_USER = ("user", "category")
LATE = ("late0_9", "late1_2", "late1_9", "late3", "late25", "num3", "uuid3", "num_dur", "early")
OWN = {"ann step_unsplit": 1160, "bob teardown": 160, "ann fault_stall": None}
# what it shows: its database and cluster, by what GPU time is asked for, GPU-seconds of some
CASES = {
    "a cluster that is read faster changes no other": ("built", "slow", (), {"idle_held": 7200}),
    **{f"a line after the end of its job is of no neighbour: {of}": (
           "built", of, BY_USER, {"bob step_unsplit": 3500, "ann step_unsplit": 580})
       for of in ("late -0.1", "late 12")},
    **{f"a step may end when the next starts: {of}": (
           "built", of, (), {"step_unsplit": 28_000, "startup": 400, "teardown": 400})
       for of in ("in order", "shuffled")},
    "free instances of a wanted profile have demand": (
        "small", "c_mig", (), {"idle_with_demand": 1800 * 6 / 7}),
    **{f"each job keeps its own steps and end: {of}": (
           "late_and_early", of, BY_USER, {**OWN, "bob step_unsplit": 5800}) for of in LATE},
    "each job keeps its own steps and end: dur_nonext": (
        "late_and_early", "dur_nonext", BY_USER, {**OWN, "bob step_unsplit": 5240}),
    "GPUs read at two intervals are both idle": (
        "gaps", "mixed", BY_USER, {"ann idle_held": 3600, "bob idle_held": 3600}),
}  # fmt: skip


@pytest.mark.parametrize(("database", "cluster", "by", "expected"), CASES.values(), ids=CASES)
def test_gpu_time_of_a_case(request, database, cluster, by, expected):
    found = gpu_s(request.getfixturevalue(database), *by, cluster=cluster)

    assert {of: found.get(of) for of in expected} == pytest.approx(expected, abs=1e-3)
    assert (database, by) != ("built", ()) or found.keys() == expected.keys()


def test_a_gpu_in_two_places_counts_once(built):
    broken = check(built).filter(pl.col("violations") > 0)
    named = "select example from marts.data_quality where kind = 'GPUs in two places'"

    assert broken.is_empty()
    (example,) = built.read(named)["example"]
    assert example.endswith(" in default/gpu-a1e400 and in lab/gpu-a01")


def test_readings_alone_are_active_and_idle_time(built):
    found = gpu_s(built, cluster="c")

    assert {*found} == {"busy_unclassified", "idle_held", "idle_no_demand"}
    assert sum(found.values()) == 230_400
    rungs = built.read("select rung, ratio from marts.evidence_ladder", scope=Scope(cluster="c"))
    rung, ratio = rungs.row(0)
    assert (rung, round(ratio, 3)) == ("gpu_activity", 0.695)


@pytest.mark.parametrize("cluster", ["b_one", "b_all", "b_all_uuid"])
def test_lines_of_ranks_without_waits_change_no_waits(small, cluster):
    found = gpu_s(small, cluster=cluster)

    assert found["data_stall"] + found["exposed_comm"] + found["straggler_wait"] == 5600
    assert found["productive"] == 8400


def test_short_gaps_are_of_the_steps_before_them(small, gaps):
    """Of 5 ms after measured steps, and of 2 ms with and without lengths of the steps."""
    gap, none = gpu_s(small, cluster="d_gap"), gpu_s(small, cluster="d_nogap")
    assert gap["productive"] == pytest.approx(none["productive"] + 349 * 0.005)
    assert {*gap} == {*none}
    by_length, by_start = gpu_s(gaps, cluster="pg_dur"), gpu_s(gaps, cluster="pg_nodur")
    assert by_length["checkpoint_save"] == by_start["checkpoint_save"]
    assert by_start["step_unsplit"] == pytest.approx(by_length["step_unsplit"] + 90 * 0.002)
