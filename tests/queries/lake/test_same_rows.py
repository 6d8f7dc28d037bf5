"""A database of a lake has the rows of a single one: late data, killed builds."""

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

pytestmark = pytest.mark.slow


def of_cluster(cluster, evidence):
    """Return the evidence of a fleet as that of another cluster, with GPUs of its own."""
    names = {"cluster": pl.lit(cluster), "gpu_uuid": pl.col("gpu_uuid") + f"-{cluster}"}
    return {table: rows.with_columns(pl.when(pl.col(name).is_not_null()).then(value).alias(name)
                                     for name, value in names.items() if name in rows.columns)
            for table, rows in evidence.items()}  # fmt: skip


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
        fleets[cluster] = of_cluster(cluster, found)
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
