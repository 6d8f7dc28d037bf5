from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.debug_log import NcclDebug

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

START = (
    "vm:1182:1182 [3] NCCL INFO ncclCommInitRankConfig comm 0x24de2750 rank 3 nranks 4 cudaDev 3"
    " nvmlDev 5 busId 1b000 commId 0xbb7076cbf189c27b - Init START"
)
LOCAL = (
    "vm:1182:1182 [3] NCCL INFO comm 0x24de2750 rank 3 nRanks 4 nNodes 1 localRanks 4 localRank 2"
    " MNNVL 0"
)
SPLIT_START = (
    "vm:1182:1182 [3] NCCL INFO ncclCommSplit comm 0x2cea4e50 rank 1 nranks 2 cudaDev 3 nvmlDev 5"
    " busId 1b000 parent 0x24de2750 splitCount 1 color 2003953581 key 3- Init START"
)
PLUGIN = (
    "vm:1182:1182 [3] NCCL INFO PROFILER/Plugin: init commName: dp group commHash:"
    " 4757378309193831034 nranks: 2 rank: 1"
)


def read(store: LocalStore, folder: Path, *lines: str) -> list[tuple[object, ...]]:
    path = folder / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    for batch in NcclDebug(path, ReadOptions("lab")).extract():
        store.load(batch)
    columns = "comm_id, comm_name, rank, ranks, node, pid, local_rank, gpu_index, pci_bus_id"
    return store.read(f"select {columns} from raw.rank_map order by all").rows()


def test_an_init_line_reports_rank_process_and_gpu(store: LocalStore, tmp_path: Path) -> None:
    found = read(store, tmp_path, START, LOCAL)

    assert found == [("0xbb7076cbf189c27b", None, 3, 4, "vm", 1182, 2, 5, "00000000:1b:00.0")]
    assert store.read("select seen_at from raw.rank_map").item() is None  # the log has no clock


@pytest.mark.parametrize(
    ("bus", "address"),
    [("60", "00000000:00:06.0"), ("9b001", "00000000:9b:00.1"), ("200000000", "00002000:00:00.0")],
)
def test_the_bus_number_is_a_pci_address_in_hexadecimal(
    store: LocalStore, tmp_path: Path, bus: str, address: str
) -> None:
    ((*_, found),) = read(store, tmp_path, START.replace("1b000", bus))

    assert found == address


def test_a_split_communicator_has_its_hash_and_name_from_the_profiler_plugin(
    store: LocalStore, tmp_path: Path
) -> None:
    found = read(store, tmp_path, SPLIT_START, PLUGIN)

    assert found == [
        ("0x42059a5dd5a5927a", "dp group", 1, 2, "vm", 1182, None, 5, "00000000:1b:00.0")
    ]


def test_a_split_communicator_without_a_plugin_cannot_be_named(
    store: LocalStore, tmp_path: Path
) -> None:
    assert read(store, tmp_path, SPLIT_START) == []


def test_a_plugin_line_of_another_thread_names_nothing(store: LocalStore, tmp_path: Path) -> None:
    assert read(store, tmp_path, SPLIT_START, PLUGIN.replace("1182:1182", "1182:1190")) == []


def test_words_of_launchers_before_the_host_are_passed_over(
    store: LocalStore, tmp_path: Path
) -> None:
    found = read(
        store,
        tmp_path,
        "[1,3]<stdout>:" + START,
        "7: [2026-11-20 12:30:00] " + START.replace("rank 3", "rank 2").replace("1182:", "1181:"),
    )

    assert [(rank, node, pid) for _, _, rank, _, node, pid, *_ in found] == [
        (2, "vm", 1181),
        (3, "vm", 1182),
    ]


def test_a_job_log_with_some_lines_of_nccl_is_left_to_the_job_logs(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("\n".join([START, *["iteration 1 loss 2.0"] * 5]))
    assert not NcclDebug.recognises(path, files.head(path))

    path.write_text("\n".join([START, LOCAL, "NCCL Inspector Plugin - Version: v2.30.7-1"]))
    assert NcclDebug.recognises(path, files.head(path))


@pytest.mark.parametrize(
    "hostile", ["vm:1:1 [0] NCCL INFO " + "x" * 5_000_000, ":" * 1_000_000 + START]
)
def test_a_huge_line_costs_no_time(store: LocalStore, tmp_path: Path, hostile: str) -> None:
    assert [rank for _, _, rank, *_ in read(store, tmp_path, START, hostile, START)] == [3]


def transports(store: LocalStore, folder: Path, *lines: str) -> list[tuple[object, ...]]:
    read(store, folder, *lines)
    columns = "comm_id, node, pid, nodes, transport"
    return store.read(f"select {columns} from raw.comm_transports order by all").rows()


def channel(text: str, thread: str = "vm:1182:1182 [3]") -> str:
    return f"{thread} NCCL INFO Channel 00/0 : 3[3] -> 4[0] {text}"


@pytest.mark.parametrize(
    ("text", "transport"),
    [
        ("via P2P/CUMEM", "P2P/CUMEM"),
        ("via P2P/IPC/read", "P2P/IPC"),
        ("via SHM/direct/direct", "SHM"),
        ("[send] via NET/IB/0", "NET/IB"),
        ("[receive] via NET/IB/3/GDRDMA", "NET/IB/GDRDMA"),
        ("[send] via NET/Socket/0", "NET/Socket"),
        ("[send] via NET/AWS Libfabric/0/GDRDMA", "NET/AWS Libfabric/GDRDMA"),
    ],
)
def test_the_transport_of_a_channel_is_reported_after_the_initialisation_too(
    store: LocalStore, tmp_path: Path, text: str, transport: str
) -> None:
    complete = START.replace("Init START", "Init COMPLETE")
    found = transports(store, tmp_path, START, LOCAL, complete, channel(text), channel(text))

    assert found == [("0xbb7076cbf189c27b", "vm", 1182, 1, transport)]


def test_the_chosen_network_counts_where_the_communicator_spans_nodes(
    store: LocalStore, tmp_path: Path
) -> None:
    network = "vm:1182:1182 [3] NCCL INFO Using network Socket"
    one_node = transports(store, tmp_path, network, START, LOCAL)
    two_nodes = transports(store, tmp_path, network, START, LOCAL.replace("nNodes 1", "nNodes 2"))

    assert one_node == []
    assert two_nodes == [("0xbb7076cbf189c27b", "vm", 1182, 2, "NET/Socket")]


def test_of_two_communicators_of_a_process_a_late_channel_is_of_neither(
    store: LocalStore, tmp_path: Path
) -> None:
    ends = [line.replace("Init START", "Init COMPLETE") for line in (START, SPLIT_START)]
    found = transports(
        store, tmp_path, START, ends[0], SPLIT_START, ends[1], channel("[send] via NET/IB/0")
    )

    assert found == [("", "vm", 1182, None, "NET/IB")]
