# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

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
ROW = (
    "   536870912     134217728     float     sum      -1   2984.6  179.88  356.01       0"
    "   2979.7  180.18  356.60       0\n"
)
FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 373.187\n"


def read(
    store: LocalStore, folder: Path, text: str, options: ReadOptions | None = None
) -> list[dict[str, Any]]:
    path = folder / "out.txt"
    path.write_text(text)
    assert NcclTests.recognises(path, files.head(path))
    for batch in NcclTests(path, options or ReadOptions()).extract():
        store.load(batch)
    order = "order by operation, size_bytes, is_in_place, repeat"
    return store.read(f"select * exclude (load_sequence) from raw.nccl_benchmarks {order}").rows(
        named=True
    )


def test_a_row_of_the_table_is_two_results_in_base_units(store: LocalStore, tmp_path: Path) -> None:
    out_of_place, in_place = read(store, tmp_path, HEAD + ROW + FOOT, ReadOptions("lab"))

    del out_of_place["benchmark_id"]
    assert out_of_place == {
        "source": "nccl-tests",
        "cluster": "lab",
        "operation": "AllReduce",
        "size_bytes": 536870912,
        "elements": 134217728,
        "dtype": "float",
        "reduction": "sum",
        "root": -1,
        "is_in_place": False,
        "repeat": 0,
        "time_s": pytest.approx(2984.6e-6),
        "is_cpu_time": False,
        "algbw_bytes_per_s": pytest.approx(179.88e9),
        "busbw_bytes_per_s": pytest.approx(356.01e9),
        "wrong": 0,
        "ranks": 2,
        "nodes": ["host1", "host2"],
        "gpu_model": "NVIDIA H200",
        "nccl_version": "2.29.7",
        "started_at": None,
    }
    assert (in_place["is_in_place"], in_place["busbw_bytes_per_s"]) == (True, 356.60e9)


@pytest.mark.parametrize(
    ("row", "time_us", "wrong"),
    [
        (ROW.replace("       0\n", "     N/A\n"), 2979.7, None),
        (ROW.replace("\n", " 2026-07-09 12:00:00\n"), 2979.7, 0),
        (ROW.replace("      -1", ""), 2979.7, 0),
        (ROW.replace("2979.7", "1.8e+07"), 1.8e7, 0),
        ("[1,0]<stdout>:" + ROW, 2979.7, 0),
        ("[0] " + ROW, 2979.7, 0),
        ("3: " + ROW, 2979.7, 0),
    ],
    ids=["not checked", "-S", "old, without root", "large", "mpirun", "kubectl", "srun"],
)
def test_forms_of_a_row(
    store: LocalStore, tmp_path: Path, row: str, time_us: float, wrong: int | None
) -> None:
    _, in_place = read(store, tmp_path, HEAD + row)

    assert in_place["time_s"] == pytest.approx(time_us * 1e-6)
    assert (in_place["wrong"], in_place["root"]) == (wrong, -1)


def test_figures_of_single_iterations_are_passed_over(store: LocalStore, tmp_path: Path) -> None:
    half = "2984.6  179.88  356.01       0  2900.1  3000.2  2999.9  1.25"
    row = f"   536870912     134217728     float     sum      -1   {half}   {half}\n"

    found = read(store, tmp_path, HEAD + row)

    assert [r["busbw_bytes_per_s"] for r in found] == [356.01e9, 356.01e9]


def test_a_replay_has_results_in_place_alone(store: LocalStore, tmp_path: Path) -> None:
    row = (
        "   536870912     134217728     float     sum      -1      2979.7  180.18  356.60       0\n"
    )

    (found,) = read(store, tmp_path, HEAD + row)

    assert found["is_in_place"]


def test_times_of_the_host_are_marked(store: LocalStore, tmp_path: Path) -> None:
    found = read(store, tmp_path, HEAD.replace("    time ", " cputime ") + ROW)

    assert {r["is_cpu_time"] for r in found} == {True}


def test_runs_in_one_log_are_distinguished(store: LocalStore, tmp_path: Path) -> None:
    second = HEAD.replace("all_reduce", "all_gather") + ROW.replace("  sum", " none")

    found = read(store, tmp_path, HEAD + ROW + FOOT + "something else\n" + second + FOOT)

    assert [(r["operation"], r["reduction"]) for r in found] == [
        ("AllGather", "none"),
        ("AllGather", "none"),
        ("AllReduce", "sum"),
        ("AllReduce", "sum"),
    ]
    assert len({r["benchmark_id"] for r in found}) == 2


def test_an_old_header_takes_the_operation_from_the_command_line(
    store: LocalStore, tmp_path: Path
) -> None:
    old = "".join(line for line in HEAD.splitlines(keepends=True)[2:])

    found = read(store, tmp_path, "$ ./build/reduce_scatter_perf -b 8\n" + old + ROW)
    assert {r["operation"] for r in found} == {"ReduceScatter"}


def test_an_output_that_names_no_operation_says_so(store: LocalStore, tmp_path: Path) -> None:
    old = "".join(line for line in HEAD.splitlines(keepends=True)[2:])

    assert {r["operation"] for r in read(store, tmp_path, old + ROW)} == {""}


def test_a_size_measured_twice_is_two_rows(store: LocalStore, tmp_path: Path) -> None:
    found = read(store, tmp_path, HEAD + ROW + ROW)

    assert [(r["is_in_place"], r["repeat"]) for r in found] == [
        (False, 0),
        (False, 1),
        (True, 0),
        (True, 1),
    ]


def test_a_broken_row_is_rejected(store: LocalStore, tmp_path: Path) -> None:
    found = read(store, tmp_path, HEAD + ROW[:90] + "\n" + ROW)

    assert len(found) == 2
    assert store.read("select line from raw.rejects").item() == 12


DOCUMENT: dict[str, Any] = {
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


def test_the_json_of_a_run_gives_the_same_columns(store: LocalStore, tmp_path: Path) -> None:
    options = ReadOptions(zone=ZoneInfo("Europe/Berlin"))

    out_of_place, in_place = read(store, tmp_path, json.dumps(DOCUMENT, indent=1), options)

    columns = ("operation", "size_bytes", "root", "time_s", "busbw_bytes_per_s", "wrong")
    assert [out_of_place[c] for c in columns] == ["AllReduce", 8, -1, 12.5e-6, 0.75e9, 0]
    assert (in_place["wrong"], in_place["nodes"], in_place["ranks"]) == (None, ["host1"], 1)
    assert in_place["nccl_version"] == "2.29.7"
    assert in_place["started_at"] == datetime(2026, 7, 9, 10)


def test_a_start_without_a_zone_is_not_known(store: LocalStore, tmp_path: Path) -> None:
    assert read(store, tmp_path, json.dumps(DOCUMENT))[0]["started_at"] is None


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DOCUMENT)[:-20],
        json.dumps(DOCUMENT | {"results": [{"size": "x", "out_of_place": {"bus_bw": 1}}]}),
        HEAD,
    ],
)
def test_an_output_without_a_result_is_refused(
    store: LocalStore, tmp_path: Path, text: str
) -> None:
    with pytest.raises(IngestError, match="nccl-tests"):
        read(store, tmp_path, text)


def test_another_text_is_not_recognised(tmp_path: Path) -> None:
    for text in (b"# Rank 0", b'{"results": []}', b"size count type busbw", b""):
        assert not NcclTests.recognises(tmp_path / "x", text)
