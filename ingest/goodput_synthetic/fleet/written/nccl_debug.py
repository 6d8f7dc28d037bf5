"""NCCL's own log of gangs that were started with `NCCL_DEBUG=INFO`: ranks and transports."""

import hashlib
from pathlib import Path

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, PCI_BUSES, Fleet
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.outages import DAY_S
from goodput_synthetic.fleet.written.events import pid

TUNED = ((65_536, "TREE", "LL"), (268_435_456, "RING", "SIMPLE"))
FALLBACK_STORY = "straggling-rank"  # of the second day: its image lacks the InfiniBand libraries


def write(
    folder: Path, fleet: Fleet, lives: list[Life], until_ms: int, *, is_tuning: bool = False
) -> None:
    """Write a log for each run of several nodes of which all ranks send events.

    is_tuning: with the algorithm that NCCL chose, as NCCL_DEBUG_SUBSYS=TUNING prints it.
    """
    for life in lives:
        is_gang = len(life.run.nodes) > 1 and life.request.reports == "all"
        if is_gang and life.attempts and life.end <= until_ms:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{life.request.run_id.replace('/', '-')}-{life.run.number}.log"
            lines = _lines(fleet, life) + (_tuning(fleet, life) if is_tuning else [])
            path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _tuning(fleet: Fleet, life: Life) -> list[str]:
    host, process = fleet.nodes[life.run.nodes[0]].name, pid(life, 0)
    return [
        f"{host}:{process}:{process} [0] NCCL INFO AllReduce: {size} Bytes -> Algo {algorithm} "
        f"proto {protocol} channel{{Lo..Hi}}={{0..15}}"
        for size, algorithm, protocol in TUNED
    ]


def _lines(fleet: Fleet, life: Life) -> list[str]:
    is_fallback = life.request.story == FALLBACK_STORY and life.begin // SECOND // DAY_S == 1
    network, more = ("Socket", "") if is_fallback else ("IB", "/GDRDMA")
    digest = hashlib.blake2b(f"{life.request.seed}/{life.run.number}".encode(), digest_size=8)
    ranks, nodes = len(life.run.units), len(life.run.nodes)
    found = []
    for rank, unit in enumerate(life.run.units):
        local = rank % GPUS_PER_NODE
        host = fleet.nodes[int(fleet.unit_node[unit])].name
        process = pid(life, rank)
        head = f"{host}:{process}:{process} [{local}] NCCL INFO"
        comm = f"comm 0x{0x55D0_0000_0000 + process * 0x1000:x}"
        begin = (
            f"{head} ncclCommInitRankConfig {comm} rank {rank} nranks {ranks} cudaDev {local} "
            f"nvmlDev {local} busId {int(PCI_BUSES[local], 16) << 12:x} "
            f"commId 0x{digest.hexdigest()} - Init"
        )
        following = (rank + 1) % ranks
        hop = f"Channel 00/0 : {rank}[{local}] -> {following}[{following % GPUS_PER_NODE}]"
        is_last = local == GPUS_PER_NODE - 1
        found += [
            f"{head} Using network {network}",
            f"{begin} START",
            f"{head} {comm} rank {rank} nRanks {ranks} nNodes {nodes} "
            f"localRanks {GPUS_PER_NODE} localRank {local} MNNVL 0",
            f"{head} {hop} [send] via NET/{network}/0{more}" if is_last
            else f"{head} {hop} via P2P/CUMEM",
            f"{begin} COMPLETE",
        ]  # fmt: skip
    return found
