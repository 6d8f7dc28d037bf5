"""Readings of implausible time change nothing, in a lake as in a single database."""

import re
from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.queries.lake.conftest import START

from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_queries.evidence.batch import Batch
from goodput_queries.ledger_build.lake import LakeOptions

AT_1970, AT_2003, AT_2036 = (datetime(year, 2, 7) for year in (1970, 2003, 2036))  # noqa: DTZ001
AT_2037 = datetime(2037, 2, 7)  # noqa: DTZ001
LEDGER = ("intermediate.int_ledger_segments", "marts.ledger_hourly", "marts.clusters",
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


def inventory():
    gpus = {"gpu_uuid": ["GPU-0", "GPU-1"], "gpu_index": [0, 1], "slurm_index": [0, 1]}
    rows = pl.DataFrame({"source": "inventory", "cluster": "c", "node": "n", **gpus})
    return Batch("gpus", rows, "inventory", "gpus", "gpus")


def each_minute(first, last):
    return [START + timedelta(minutes=minute) for minute in range(first, last)]


def loads_with_strays():
    """Return loads with readings of other times in them and between them."""
    return [
        inventory(),
        of_gpus("first", *each_minute(0, 120), AT_2003),
        of_gpus("stray", AT_2036),
        of_gpus("early", AT_1970, gpus=1),
        of_node("host", *each_minute(0, 180), AT_2037),
        of_gpus("last", *each_minute(120, 180), AT_2036.replace(minute=1)),
    ]


def answers(store):
    return {name: store.read(f"from {name} order by all").rows() for name in LEDGER}


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

    loads = loads_with_strays()
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
