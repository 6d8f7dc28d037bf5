import json

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.inspector import NcclInspector
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

DUMPED_US = 1795175064709880
HEADER = {"id": "0x9af1c2d3e4", "comm_name": "dp", "rank": 2, "n_ranks": 4, "nnodes": 1}
METADATA = {
    "inspector_output_format_version": "v4.0",
    "git_rev": "v2.30.7-1",
    "rec_mechanism": "nccl_profiler_interface",
    "dump_timestamp_us": DUMPED_US,
    "hostname": "vm",
    "pid": 20896,
}
COLL = {
    "coll": "AllReduce",
    "coll_sn": 0,
    "coll_msg_size_bytes": 100000000,
    "coll_exec_time_us": 450,
    "coll_timing_source": "kernel_gpu",
    "coll_algobw_gbs": 222.25,
    "coll_busbw_gbs": 333.5,
}


def line(**coll):
    return {"header": HEADER, "metadata": METADATA, "coll_perf": {**COLL, **coll}}


def write(folder, *records):
    path = folder / "vm-pid20896.log"
    compact = (",", ":")
    path.write_text(
        "".join(
            (r if isinstance(r, str) else json.dumps(r, separators=compact)) + "\n" for r in records
        )
    )
    return path


def read(store, path):
    return ingest(store, "nccl-inspector", [path], ReadOptions())


def test_numbers_that_are_missing_are_reported(whole_store, tmp_path):
    """They are the only word of what rings and samples lost; what comes twice counts once."""
    later = {"metadata": {**METADATA, "dump_timestamp_us": DUMPED_US + 5}}
    read(
        whole_store, write(tmp_path, *(line(coll_sn=n) for n in (3, 4, 9)), line(coll_sn=9) | later)
    )
    whole_store.build()

    ((n, what, example),) = whole_store.read(
        "select n, what, example from marts.data_quality where kind = 'collectives not recorded'"
    ).rows()
    assert n == 4
    assert "42.9 % of them" in what
    assert example == "AllReduce of dp, rank 2 on vm: 3 of 7"


def test_where_no_number_is_missing_nothing_is_reported(whole_store, tmp_path):
    read(
        whole_store, write(tmp_path, *(line(coll_sn=n) for n in (3, 4, 5)), line(coll="AllGather"))
    )
    whole_store.build()

    found = whole_store.read("from marts.data_quality where kind = 'collectives not recorded'")
    assert found.is_empty()


def test_the_prometheus_mode_needs_an_option_when_it_was_written(store, tmp_path):
    path = tmp_path / "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
    labels = 'node="vm",gpu="GPU2",collective="AllGather",message_size="6-7MB"'
    path.write_text(f"nccl_bus_bandwidth_gbs{{{labels}}} 60.5\n")

    assert recognise(path) is NcclInspector
    with pytest.raises(IngestError, match="--observed-at"):
        read(store, path)
