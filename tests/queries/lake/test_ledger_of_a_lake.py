"""A database of a lake has the same ledger as one that holds every row itself, row for row."""

import contextlib

import pytest
from tests.evidence_over_time import assert_same, batches, load, made_up_evidence, stored_stages

from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_lake.tasks.engines import InProcess


@pytest.fixture(scope="module")
def evidence(tmp_path_factory, module_store):
    """Return the raw rows of 64 GPUs and one hour, by table."""
    return made_up_evidence(tmp_path_factory.mktemp("fleet"), module_store(), gpus=64, hours=1)


@pytest.fixture(scope="module")
def single(evidence, module_store):
    """Return the stages of a database that holds every row."""
    store = module_store()
    for name, rows in evidence.items():
        load(store, name, rows, "whole")
    store.build()
    return stored_stages(store)


@pytest.fixture(scope="module")
def lake(tmp_path_factory, evidence):
    """Return a lake with all rows."""
    lake = Lake.create(str(tmp_path_factory.mktemp("lake")), buckets=4)
    for name, rows in evidence.items():
        for batch in batches(name, rows, "whole"):
            lake.append(batch)
    return lake


@pytest.fixture
def built_by_tasks(new_store, lake):
    """Give a database of the lake and the tasks that computed it, as on Ray, in this process."""
    store, done = new_store(), []
    attach(store, lake.url)
    store.lake.engine = InProcess(workers=2, threads=1)
    store.lake.on_task = lambda *of: done.append(of)
    store.build()
    return store, done


def test_a_lake_has_the_ledger_of_a_single_database(built_by_tasks, single):
    store, done = built_by_tasks
    assert store.read("select count(*) from raw.gpu_samples").item() == 0
    assert ("temp.energy_steps", 2, 2) in done
    assert_same(stored_stages(store), single)


@pytest.mark.slow
def test_workers_of_ray_that_die_change_nothing(tmp_path, new_store, lake, single):
    """Each worker is killed in the middle of its first task; what it did is done again."""
    ray = pytest.importorskip("ray", reason="the package ray is not installed")
    from goodput_lake.tasks.ray_engine import RETRIES, RayEngine  # noqa: PLC0415

    died = tmp_path / "died"
    died.mkdir()

    def compute_or_die(task, memory_gb):
        import os  # noqa: PLC0415 -- in the worker
        import signal  # noqa: PLC0415

        from goodput_lake.tasks import ray_engine  # noqa: PLC0415

        found = ray_engine.compute(task, memory_gb)
        if len(list(died.iterdir())) < 2:
            (died / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    store = new_store()
    attach(store, lake.url)
    with contextlib.closing(RayEngine(workers=2)) as engine:
        engine._remote = ray.remote(num_cpus=1, max_retries=RETRIES)(compute_or_die)
        store.lake.engine = engine
        store.build()

    assert len(list(died.iterdir())) >= 2
    assert_same(stored_stages(store), single)
