"""What a database takes over from a lake that others load into, and publishes to it.

How a build of a lake is cut into tasks; readings of implausible time, as in a single database.
"""

import re
from datetime import date, datetime, timedelta
from itertools import product

import polars as pl
import pytest
from deltalake import DeltaTable
from tests.queries.conftest import START_MS
from tests.queries.lake.conftest import START, readings
from tests.tables import each

from goodput_lake import publish as publishing
from goodput_lake.prune import drop_old_days
from goodput_lake.publish import LEDGER, METRICS, publish
from goodput_lake.pull import attach, pull
from goodput_lake.tables.lake import Lake
from goodput_lake.tables.loads import EPOCH
from goodput_lake.tasks.plan import parts_of
from goodput_lake.upkeep import Compaction, compact
from goodput_queries.evidence.batch import Batch
from goodput_queries.evidence.retention import Retention
from goodput_queries.ledger_build.lake import LakeOptions
from goodput_queries.scope import Scope

DAY_S = 86_400


@pytest.fixture
def store(store, lake):
    """Give an empty database of the lake."""
    attach(store, lake.url)
    return store


def inventory(digest, **of_gpus):
    rows = pl.DataFrame({"source": "inventory", "node": "n", **of_gpus})
    return Batch("gpus", rows, "inventory", "inventory.csv", digest)


def count(store):
    return store.read("select count(*) from raw.gpu_samples").item()


def ms(moment):
    return (moment - EPOCH) // timedelta(milliseconds=1)


def clusters_of(store):
    return store.read("select cluster, gpu_uuid from raw.gpus order by all").rows()


def test_loads_from_before_a_compaction_are_taken_over(lake, store):
    """Their files are gone, their rows are in the merged ones."""
    for number in range(3):
        lake.append(inventory(f"d{number}", cluster="west", gpu_uuid=f"GPU-{number}"))
    compact(lake, Compaction(kept_h=0), today=date(2026, 11, 21))

    assert pull(store, lake).loads == 3
    assert clusters_of(store) == [("west", f"GPU-{number}") for number in range(3)]


def test_loads_whose_days_were_pruned_are_known_without_their_rows(lake, store):
    lake.append(readings("d0"))
    for day in (0, 1):
        rows = readings(f"p{day}", (86_400 * day,)).rows.select("source", "gpu_uuid", "ts")
        rows = rows.with_columns(processes=pl.lit(1))
        lake.append(Batch("gpu_processes", rows, "nvml", "node01", f"p{day}"))
    lake.append(readings("d1", (86_400,)))
    drop_old_days(lake, Retention(samples_days=1), now=START + timedelta(days=1), is_confirmed=True)

    assert pull(store, lake).loads == 4
    found = store.read("select min(ts), count(*) from raw.gpu_processes").row(0)
    assert found == (START + timedelta(days=1), 2)


def test_the_same_file_of_two_clusters_is_two_loads(lake, store):
    """It does not name its cluster, so that only `--cluster` distinguishes its rows."""
    east = Lake.open(lake.url, cluster="east")
    lake.append(inventory("same file", cluster="west", gpu_uuid="GPU-1"))
    pull(store, lake)
    east.append(inventory("same file", cluster="east", gpu_uuid="GPU-1"))
    pull(store, lake)

    assert clusters_of(store) == [("east", "GPU-1"), ("west", "GPU-1")]


def test_readings_of_recent_days_are_in_the_database_too(lake, store):
    lake.append(readings("d1", (0, 30)))
    assert pull(store, lake, recent_days=2).readings == 4
    assert count(store) == 4
    assert not store.lake.is_older(ms(START))

    lake.append(readings("d2", (2 * DAY_S, 2 * DAY_S + 30)))
    pull(store, lake, recent_days=2)
    assert count(store) == 4  # those of the first day are in the lake alone
    assert store.lake.is_older(ms(START))
    loads = store.read("select rows_new from state.ingested order by sequence")
    assert loads["rows_new"].to_list() == [4, 4]


def test_readings_that_are_in_the_lake_alone_are_read_from_there(lake, store):
    lake.append(readings("d1", (0, 30, 60), gpus=40))
    pull(store, lake)
    assert count(store) == 0

    sql = """select gpu_uuid, ts_ms, power_w from staging.stg_gpu_samples
        where list_contains($1, gpu_uuid) and ts >= from_ms($2) and ts < from_ms($3)
        order by all"""
    bounds = ms(START), ms(START) + 60_000
    found = store.lake.read(sql, [["GPU-7"], *bounds], bounds, ["GPU-7"])
    assert found.rows() == [("GPU-7", ms(START) + at, 300.0) for at in (0, 30_000)]


def test_readings_of_a_host_are_read_from_there_too(lake, store):
    times = [START + timedelta(minutes=minute) for minute in range(3)]
    counters = {"cpu_total_s": [0.0, 60.0, 120.0], "cpu_busy_s": [0.0, 30.0, 45.0]}
    for node in ("n1", "n2"):
        rows = pl.DataFrame({"source": "node", "cluster": "c", "node": node, "ts": times})
        rows = rows.with_columns(pl.Series(name, values) for name, values in counters.items())
        lake.append(Batch("node_samples", rows, "node", node, node))
    store.build()

    sql = "select node, end_ms, cpu_busy_ratio from marts.host_intervals order by all"
    bounds = ms(START), ms(START) + 180_000
    found = store.lake.read(sql, [], bounds, ["n1"], Scope(*bounds, node="n1"))
    ends = [ms(START) + 60_000, ms(START) + 120_000]
    assert found.rows() == [("n1", ends[0], 0.5), ("n1", ends[1], 0.25)]
    assert store.lake.read(sql, [], bounds, None, Scope(*bounds)).height == 4


HOUR_S = 3_600
FIRST, SECOND = date(2027, 1, 15), date(2027, 1, 16)


def published(lake, table=LEDGER):
    found = pl.DataFrame(DeltaTable(f"{lake.url}/{table.path}").to_pyarrow_table())
    return found.drop("lake_cluster", "lake_day").sort(pl.all())


def closed(store, until_ms):
    found = store.read("from marts.ledger_hourly where hour_ms + 3600000 <= $1", [until_ms])
    return found.sort(pl.all())


def test_closed_hours_of_changed_days_are_replaced(lake, evidence):
    evidence.node("n1", 1)
    evidence.watched(DAY_S + HOUR_S / 2)  # the last hour is open
    evidence.job("1", 0, 7_200, ["n1"], 1)
    evidence.store.build()
    until_ms = START_MS + DAY_S * 1000

    written = publish(evidence.store, lake)
    days = written.filter(table=LEDGER.name).select("cluster", "day").rows()
    assert days == [("c", FIRST), ("c", SECOND)]
    assert published(lake).rows() == closed(evidence.store, until_ms).rows()
    assert publish(evidence.store, lake).is_empty()

    evidence.job("late", 9_000, 10_000, ["n1"], 1)  # late evidence of the first day
    evidence.store.build()
    again = publish(evidence.store, lake)
    assert again.select("table", "day").rows() == [(LEDGER.name, FIRST)]
    assert published(lake).rows() == closed(evidence.store, until_ms).rows()
    assert published(lake)["gpu_ms"].sum() == DAY_S * 1000

    compacted = dict(compact(lake).select("table", "files").rows())
    assert compacted[LEDGER.path] == 2
    assert publish(evidence.store, Lake.open(lake.url)).is_empty()


@pytest.mark.machine
def test_builds_of_a_lake_publish_what_they_changed(lake, store, monkeypatch):
    """A process that ends between two commits leaves the rest to the next one."""
    lake.append(inventory("gpus", cluster=["west", "east"], gpu_uuid=["GPU-0", "GPU-1"]))
    lake.append(readings("d0", range(0, DAY_S + 1800, 60)))

    def build():
        """Build as a new process does."""
        store._lake, store.lake_options = None, LakeOptions(publishes=True)
        store.build()
        store.lake.publish()

    with monkeypatch.context() as patch:
        patch.delitem(publishing.TABLES, METRICS.name)
        with pytest.raises(KeyError):
            build()
    build()

    first = START.date()
    noted = store.read("select * exclude (sequence) from state.unpublished_days order by all")
    second = first + timedelta(days=1)  # a day that is not over
    assert noted.rows() == [(METRICS.name, "east", second), (METRICS.name, "west", second)]
    assert published(lake).rows() == closed(store, ms(START) + 1000 * DAY_S).rows()
    of_first_day = store.read(
        "from marts.gpu_metrics where start_ms < $1", [ms(START) + 500 * DAY_S]
    )
    assert published(lake, METRICS).rows() == of_first_day.sort(pl.all()).rows()

    versions = [DeltaTable(f"{lake.url}/{one.path}").version() for one in (LEDGER, METRICS)]
    lake.append(readings("d1", (DAY_S + 1860, DAY_S + 1920)))
    build()
    assert [DeltaTable(f"{lake.url}/{one.path}").version() for one in (LEDGER, METRICS)] == versions


EIGHT = dict.fromkeys(range(8), 625)  # GPUs by bucket


def test_every_bucket_and_hour_is_in_one_task_which_has_at_most_so_many_gpu_hours():
    parts = parts_of({*range(10, 34)}, EIGHT, most_gpu_hours=24_000, workers=3)
    found = [pair for buckets, *span in parts for pair in product(buckets, range(*span))]
    assert sorted(found) == sorted(product(range(8), range(10, 34)))
    assert max(625 * len(buckets) * (last - first) for buckets, first, last in parts) <= 24_000


@each({"a multiple of the workers": (12, 2), "few GPUs": (1, 4)})
def test_each_worker_has_as_many_tasks_as_the_others(hours, workers):
    assert len(parts_of({*range(hours)}, EIGHT, most_gpu_hours=24_000, workers=workers)) == 4


AT_1970, AT_2003, AT_2036 = (datetime(year, 2, 7) for year in (1970, 2003, 2036))  # noqa: DTZ001
AT_2037 = datetime(2037, 2, 7)  # noqa: DTZ001
READ = ("intermediate.int_ledger_segments", "marts.ledger_hourly", "marts.clusters",
          "state.reading_series", "intermediate.int_gpu_metrics",
          "intermediate.int_host_metrics")  # fmt: skip
LOADS = "select source, origin, digest, rejects, window_start_at, window_end_at from state.ingested"


def of_gpus(digest, *times, gpus=2):
    rows = [("nvml", f"GPU-{gpu}", "", at, 1.0, 300.0) for gpu in range(gpus) for at in times]
    names = ["source", "gpu_uuid", "gpu_instance", "ts", "gpu_busy_ratio", "power_w"]
    return Batch(
        "gpu_samples", pl.DataFrame(rows, schema=names, orient="row"), "nvml", digest, digest
    )


def of_node(digest, *times):
    rows = pl.DataFrame({"source": "node", "cluster": "c", "node": "n", "ts": times, "load1": 2.0})
    return Batch("node_samples", rows, "node", digest, digest)


def answers(store):
    return {name: store.read(f"from {name} order by all").rows() for name in READ}


def rejects(store):
    """Return what was rejected, without the numbers of loads."""
    found = store.read("select source, origin, reason, content from raw.rejects").rows()
    return {(*row[:3], re.sub(r"'load_sequence': \d+", "", row[3])) for row in found}


@pytest.mark.machine
def test_strays_change_nothing_and_are_rejected_as_in_a_database(tmp_path, new_store):
    lake = Lake.create(str(tmp_path / "lake"), buckets=2)
    single, of_lake = new_store(), new_store()
    of_lake.lake_options = LakeOptions(recent_days=3650)
    attach(of_lake, lake.url)

    minutes = [START + timedelta(minutes=minute) for minute in range(180)]
    indices = {"gpu_index": [0, 1], "slurm_index": [0, 1]}
    loads = [  # with readings of other times in them and between them
        inventory("gpus", cluster="c", gpu_uuid=["GPU-0", "GPU-1"], **indices),
        of_gpus("first", *minutes[:120], AT_2003), of_gpus("stray", AT_2036),
        of_gpus("early", AT_1970, gpus=1), of_node("host", *minutes, AT_2037),
        of_gpus("last", *minutes[120:], AT_2036.replace(minute=1)),
    ]  # fmt: skip
    for some in (loads[:3], loads[3:]):
        for batch in some:
            for store in (single, of_lake):
                store.load(batch)
        of_lake.build()
    single.build()

    expected = answers(single)
    assert expected["marts.ledger_hourly"]
    assert answers(of_lake) == expected
    assert rejects(of_lake) == rejects(single)
    assert len(rejects(of_lake)) == 8
    assert (
        of_lake.read(f"{LOADS} order by all").rows() == single.read(f"{LOADS} order by all").rows()
    )
    newest = "select max(ts), count(*) from raw.gpu_samples"
    assert of_lake.read(newest).rows() == single.read(newest).rows()
