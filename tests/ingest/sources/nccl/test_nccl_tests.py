# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_queries.errors import IngestError

HEAD = """\
# nccl-tests version 2.18.3 nccl-headers=22907 nccl-library=22907
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid  12345 on      host1 device  0 [0000:1b:00] NVIDIA H200
#  Rank  1 Group  0 Pid  12346 on      host2 device  0 [0000:1b:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""  # noqa: E501


def read(store, folder, text, options=None):
    path = folder / "out.txt"
    path.write_text(text)
    assert NcclTests.recognises(path, files.head(path))
    for batch in NcclTests(path, options or ReadOptions()).extract():
        store.load(batch)
    order = "order by operation, size_bytes, is_in_place, repeat"
    return store.read(f"select * exclude (load_sequence) from raw.nccl_benchmarks {order}").rows(
        named=True
    )


DOCUMENT = {
    "version": "2.18.3",
    "start_time": "2026-07-09 12:00:00",
    "args": ["./build/all_reduce_perf", "-b", "8", "-J", "x.json"],
    "nccl_version": 22907,
    "config": {
        "devices": [
            {"rank": 0, "hostname": "host1", "device_info": "NVIDIA H200"},
        ]
    },
    "results": [
        {
            "size": 8,
            "count": 2,
            "type": "float",
            "redop": "sum",
            "root": "    -1",
            "out_of_place": {"time": 12.5, "alg_bw": 0.5, "bus_bw": 0.75, "nwrong": 0.0},
            "in_place": {"time": 12.25, "alg_bw": 0.5, "bus_bw": 0.75, "nwrong": None},
        }
    ],
}


def test_the_json_of_a_run_gives_the_same_columns(store, tmp_path):
    options = ReadOptions(zone=ZoneInfo("Europe/Berlin"))

    out_of_place, in_place = read(store, tmp_path, json.dumps(DOCUMENT, indent=1), options)

    columns = ("operation", "size_bytes", "root", "time_s", "busbw_bytes_per_s", "wrong")
    assert [out_of_place[c] for c in columns] == ["AllReduce", 8, -1, 12.5e-6, 0.75e9, 0]
    assert (in_place["wrong"], in_place["nodes"], in_place["ranks"]) == (None, ["host1"], 1)
    assert in_place["nccl_version"] == "2.29.7"
    assert in_place["started_at"] == datetime(2026, 7, 9, 10)


def test_a_start_without_a_zone_is_not_known(store, tmp_path):
    assert read(store, tmp_path, json.dumps(DOCUMENT))[0]["started_at"] is None


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DOCUMENT)[:-20],
        json.dumps(DOCUMENT | {"results": [{"size": "x", "out_of_place": {"bus_bw": 1}}]}),
        HEAD,
    ],
)
def test_an_output_without_a_result_is_refused(store, tmp_path, text):
    with pytest.raises(IngestError, match="nccl-tests"):
        read(store, tmp_path, text)


def test_another_text_is_not_recognised(tmp_path):
    for text in (b"# Rank 0", b'{"results": []}', b"size count type busbw", b""):
        assert not NcclTests.recognises(tmp_path / "x", text)
