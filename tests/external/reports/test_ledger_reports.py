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
def built(new_store, copied):
    """Give a database with these cases, that of two places and those of readings, built."""
    store = new_store()
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
    yield store
    store.close()


def test_a_gpu_in_two_places_counts_once(built):
    broken = check(built).filter(pl.col("violations") > 0)
    named = "select example from marts.data_quality where kind = 'GPUs in two places'"

    assert broken.is_empty()
    (example,) = built.read(named)["example"]
    assert example.endswith(" in default/gpu-a1e400 and in lab/gpu-a01")


def test_a_cluster_that_is_read_faster_changes_no_other(built):
    assert gpu_s(built, cluster="slow") == {"idle_held": 7200}


@pytest.mark.parametrize("cluster", ["late -0.1", "late 12"])
def test_a_line_after_the_end_of_its_job_is_of_no_neighbour(built, cluster):
    found = gpu_s(built, "user", "category", cluster=cluster)

    assert (found["bob step_unsplit"], found["ann step_unsplit"]) == (3500, 580)


@pytest.mark.parametrize("cluster", ["in order", "shuffled"])
def test_a_step_may_end_when_the_next_starts(built, cluster):
    found = gpu_s(built, cluster=cluster)

    assert found == {"step_unsplit": 28_000, "startup": 400, "teardown": 400}


def test_readings_alone_are_active_and_idle_time(built):
    found = gpu_s(built, cluster="c")

    assert {*found} == {"busy_unclassified", "idle_held", "idle_no_demand"}
    assert sum(found.values()) == 230_400
    rungs = built.read("select rung, ratio from marts.evidence_ladder", scope=Scope(cluster="c"))
    rung, ratio = rungs.row(0)
    assert (rung, round(ratio, 3)) == ("gpu_activity", 0.695)


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


@pytest.fixture(scope="module")
def small(scripted):
    """Give what `small.py` builds."""
    return scripted("small.py")


@pytest.fixture(scope="module")
def late_and_early(scripted):
    return scripted("small2.py")


@pytest.fixture(scope="module")
def gaps(scripted):
    """Give what `small4.py` builds."""
    return scripted("small4.py")


def test_free_instances_of_a_wanted_profile_have_demand(small):
    found = gpu_s(small, cluster="c_mig")

    assert found["idle_with_demand"] == pytest.approx(1800 * 6 / 7, abs=1e-3)


@pytest.mark.parametrize("cluster", ["b_one", "b_all", "b_all_uuid"])
def test_lines_of_ranks_without_waits_change_no_waits(small, cluster):
    found = gpu_s(small, cluster=cluster)

    assert found["data_stall"] + found["exposed_comm"] + found["straggler_wait"] == 5600
    assert found["productive"] == 8400


def test_a_gap_of_5_ms_after_a_measured_step_is_of_the_step(small):
    gap, none = gpu_s(small, cluster="d_gap"), gpu_s(small, cluster="d_nogap")

    assert gap["productive"] == pytest.approx(none["productive"] + 349 * 0.005)
    assert {*gap} == {*none}


LATE = ("late0_9", "late1_2", "late1_9", "late3", "late25", "num3", "uuid3", "num_dur", "early")


@pytest.mark.parametrize("cluster", [*LATE, "dur_nonext"])
def test_each_job_keeps_its_own_steps_and_end(late_and_early, cluster):
    found = gpu_s(late_and_early, "user", "category", cluster=cluster)

    last = 5240 if cluster == "dur_nonext" else 5800
    assert (found["ann step_unsplit"], found["bob step_unsplit"]) == (1160, last)
    assert found["bob teardown"] == 160
    assert not {name for name in found if name.startswith("ann fault")}


def test_short_gaps_count_alike_with_and_without_lengths(gaps):
    by_length, by_start = gpu_s(gaps, cluster="pg_dur"), gpu_s(gaps, cluster="pg_nodur")

    assert by_length["checkpoint_save"] == by_start["checkpoint_save"]
    assert by_start["step_unsplit"] == pytest.approx(by_length["step_unsplit"] + 90 * 0.002)


def test_gpus_read_at_two_intervals_are_both_idle(gaps):
    found = gpu_s(gaps, "user", "category", cluster="mixed")

    assert {k: v for k, v in found.items() if k != "None idle_no_demand"} == {
        "ann idle_held": 3600, "bob idle_held": 3600}  # fmt: skip
