import json

import pytest

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

MANY = 10**9
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


def reasons(store):
    rows = store.read("select line, reason from raw.rejects order by line").rows()
    return [(number, reason) for number, reason in rows]


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


@pytest.mark.parametrize("lines_per_part", [1, 2, 3, 100])
def test_records_without_a_header_take_the_last_one_that_came_alone(
    store, tmp_path, monkeypatch, lines_per_part
):
    sizes = {"lines_per_part": lines_per_part, "bytes_per_part": MANY}
    monkeypatch.setattr(files.parts, "__kwdefaults__", sizes)

    def bare(number):
        return {"coll_perf": {**COLL, "coll_sn": number}}

    def marker(rank):
        alone = {**HEADER, "rank": rank}
        return {"header": alone, "metadata": METADATA, "dump_stats": {"dropped": 0}}

    path = write(
        tmp_path, bare(0), marker(0), bare(1), bare(2), marker(1), bare(3), line(coll_sn=9), bare(4)
    )
    read(store, path)

    found = store.read("select rank, sequence_number from raw.collectives order by 2").rows()
    assert found == [(0, 1), (0, 2), (1, 3), (1, 4), (2, 9)]
    assert reasons(store) == [(1, "header.id is missing")]
