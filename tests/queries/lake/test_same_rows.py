"""A database of a lake has the rows of a single one: late data, killed builds and workers."""

import contextlib
import multiprocessing
import os
import random
import time

import polars as pl
import pytest
from deltalake import DeltaTable
from tests.evidence_over_time import assert_same, batches, load, made_up_evidence, stored_stages

from goodput_lake.publish import LEDGER
from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_lake.tasks.engines import InProcess
from goodput_lake.upkeep import Compaction, compact
from goodput_queries.database import LocalStore
from goodput_queries.ledger_build.lake import LakeOptions

CLUSTERS = ("west", "east", "north")
KILLS = int(os.environ.get("GOODPUT_LAKE_KILLS", "10"))
BUILDERS = multiprocessing.get_context("forkserver")
BUILDERS.set_forkserver_preload(["goodput_queries.ledger_build.build", "deltalake"])


@pytest.mark.slow
def test_three_clusters_with_late_data_have_the_same_rows(tmp_path, new_store):
    """Each writes into the lake with its name; half of the rows come after a build."""
    single, built_of_lake = new_store(2), new_store(2)
    lakes = {}
    url = str(tmp_path / "lake")
    Lake.create(url, buckets=4)
    fleets = {}
    for number, cluster in enumerate(CLUSTERS):
        empty = new_store()
        found = made_up_evidence(tmp_path / cluster, empty, gpus=64, hours=4, seed=number + 5)
        empty.close()
        names = {"cluster": pl.lit(cluster), "gpu_uuid": pl.col("gpu_uuid") + f"-{cluster}"}
        fleets[cluster] = {  # as that of another cluster, with GPUs of its own
            table: rows.with_columns(pl.when(pl.col(name).is_not_null()).then(value).alias(name)
                                     for name, value in names.items() if name in rows.columns)
            for table, rows in found.items()
        }  # fmt: skip
        lakes[cluster] = Lake.open(url, cluster=cluster)
        for name, rows in fleets[cluster].items():
            load(single, name, rows, cluster)
    single.build()
    built_of_lake.lake_options = LakeOptions(recent_days=2)
    attach(built_of_lake, url)
    built_of_lake.lake.engine = InProcess(2, threads=1)
    for part in range(2):
        for cluster, evidence in fleets.items():
            for name, rows in evidence.items():
                shuffled = rows.sample(fraction=1, shuffle=True, seed=11)
                for batch in batches(name, shuffled.gather_every(2, part), f"{cluster} {part}"):
                    lakes[cluster].append(batch)
        built_of_lake.build()
        compact(Lake.open(url), Compaction(kept_h=0))

    assert built_of_lake.read("select count(*) from marts.clusters").item() == len(CLUSTERS)
    assert_same(stored_stages(built_of_lake), stored_stages(single))


def build(path):
    """Build a database of a lake and publish, in a process that may be killed."""
    options = LakeOptions(recent_days=2, publishes=True)
    store = LocalStore(path, threads=1, lake=options)
    store.lake.engine = InProcess(2, threads=1)
    store.build()
    store.lake.publish()
    store.close()


def killed(path, after_s):
    """Build in a process that is killed after some time; return how long it took; None: killed."""
    started = time.perf_counter()
    process = BUILDERS.Process(target=build, args=(path,))
    process.start()
    process.join(after_s)
    took_s = None if process.is_alive() else time.perf_counter() - started
    process.kill()
    process.join()
    return took_s


@pytest.mark.slow
def test_a_build_that_is_killed_is_done_by_the_next_one(tmp_path, new_store):
    """The driver dies at random moments, between loads; the database opens after each."""
    chance = random.Random(24)  # noqa: S311 -- moments to kill at, no secrets
    empty, single = new_store(), new_store()
    evidence = made_up_evidence(tmp_path / "fleet", empty, gpus=64, hours=26)
    lake = Lake.create(str(tmp_path / "lake"), buckets=4)
    path = str(tmp_path / "fleet.duckdb")
    store = LocalStore(path, threads=1)
    attach(store, lake.url)
    store.close()
    kills, longest_s = 0, 15.0
    for part in range(2 * KILLS):
        for name, rows in evidence.items():
            for batch in batches(name, rows.gather_every(2 * KILLS, part), part):
                lake.append(batch)
        took_s = killed(path, chance.uniform(0, longest_s))
        kills += took_s is None
        longest_s = took_s or longest_s
        store = LocalStore(path, threads=1)
        store.read("select count(*) from state.built")
        store.close()
    build(path)

    assert kills >= KILLS
    for name, rows in evidence.items():
        load(single, name, rows, "whole")
    single.build()
    store = LocalStore(path, threads=1)
    assert_same(stored_stages(store), stored_stages(single))
    written = pl.DataFrame(DeltaTable(f"{lake.url}/{LEDGER.path}").to_pyarrow_table())
    sql = """select hours.* from marts.ledger_hourly as hours
        inner join intermediate.int_clusters using (cluster)
        where hour_ms + 3600000 <= as_of_ms"""
    closed = single.read(sql)
    written = written.select(closed.columns).sort(pl.all())
    assert written.rows() == closed.sort(pl.all()).rows()
    store.close()


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


def test_a_lake_has_the_ledger_of_a_single_database(new_store, lake, single):
    """The tasks that compute it are as on Ray, in this process."""
    store, done = new_store(), []
    attach(store, lake.url)
    store.lake.engine = InProcess(workers=2, threads=1)
    store.lake.on_task = lambda *of: done.append(of)
    store.build()
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
