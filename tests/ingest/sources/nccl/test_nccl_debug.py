import pytest

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.debug_log import NcclDebug

START = (
    "vm:1182:1182 [3] NCCL INFO ncclCommInitRankConfig comm 0x24de2750 rank 3 nranks 4 cudaDev 3"
    " nvmlDev 5 busId 1b000 commId 0xbb7076cbf189c27b - Init START"
)
LOCAL = (
    "vm:1182:1182 [3] NCCL INFO comm 0x24de2750 rank 3 nRanks 4 nNodes 1 localRanks 4 localRank 2"
    " MNNVL 0"
)


def read(store, folder, *lines):
    path = folder / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    for batch in NcclDebug(path, ReadOptions("lab")).extract():
        store.load(batch)
    columns = "comm_id, comm_name, rank, ranks, node, pid, local_rank, gpu_index, pci_bus_id"
    return store.read(f"select {columns} from raw.rank_map order by all").rows()


def test_a_log_with_a_line_of_the_inspector_is_one_of_nccl(tmp_path):
    text = "\n".join([START, LOCAL, "NCCL Inspector Plugin - Version: v2.30.7-1"])

    assert NcclDebug.recognises(tmp_path, text.encode())


@pytest.mark.parametrize(
    "hostile", ["vm:1:1 [0] NCCL INFO " + "x" * 5_000_000, ":" * 1_000_000 + START]
)
def test_a_huge_line_costs_no_time(store, tmp_path, hostile):
    assert [rank for _, _, rank, *_ in read(store, tmp_path, START, hostile, START)] == [3]
