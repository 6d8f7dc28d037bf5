"""What is known of nodes beside their exporters: snapshots of their settings, tests of suspects."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, MODELS, Fleet, Node
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.written.accounting import VERSIONS

HOST = {
    "cpu.governor": "performance", "kernel.numa_balancing": "0", "vm.swappiness": "10",
    "gpu.persistence": "on", "fabric.manager": "running", "limit.memlock": "unlimited",
    "mount:/data": "lustre rw,flock",
}  # fmt: skip
ODD_SETTINGS = {"kernel.numa_balancing": "1", "cpu.governor": "powersave"}  # of one node
OF_RUN = {"env:NCCL_DEBUG": "INFO", "env:NCCL_IB_HCA": "mlx5", "env:NCCL_NVLS_ENABLE": "1"}
ODD_OF_RUN = {"env:NCCL_NVLS_ENABLE": "0"}  # of one node, until the run is started again
STORY = "llm-pretrain"
SNAPSHOT_S, TESTED_AFTER_S = 3_600, 1_800
TESTS = ("burn-in", "memory", "gemm-checksum")


def write_snapshots(path: Path, fleet: Fleet, lives: list[Life], start_s: int, now_s: int) -> None:
    """Write a snapshot of each node from the first hour, and one a node of the largest runs."""
    odd = len(fleet.nodes) // 3
    lines = [
        _snapshot(node, start_s + SNAPSHOT_S, ODD_SETTINGS if number == odd else {})
        for number, node in enumerate(fleet.nodes)
        if now_s > SNAPSHOT_S
    ]
    for life in lives:
        if life.request.story == STORY:
            at = start_s + life.begin // SECOND + 60
            for number in life.run.nodes:
                is_odd = number == life.run.nodes[-1] and life.run.number == 0
                run = {"run_id": life.request.run_id}
                lines.append(
                    _snapshot(fleet.nodes[number], at, OF_RUN | (ODD_OF_RUN if is_odd else {}), run)
                )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _snapshot(node: Node, at_s: int, own: dict[str, str], run: dict[str, str] | None = None) -> str:
    of_model = {"gpu.model": MODELS[node.model], "gpu.driver": VERSIONS[node.model][0]}
    settings = HOST | of_model | own
    return json.dumps(
        {"goodput_snapshot": 1, "node": node.name, "ts": at_s, **(run or {}),
         "is_container": False, "settings": settings, "unknown": {}}
    )  # fmt: skip


def write_tests(path: Path, fleet: Fleet, lives: list[Life], start: datetime) -> None:
    """Write the tests of the nodes of runs whose loss was lost: one GPU of the last one fails."""
    lines = ["node,test,result,at,gpu,message"]
    for life in lives:
        if "suspect" not in life.request.options:
            continue
        at = start.astimezone(UTC) + timedelta(milliseconds=life.end, seconds=TESTED_AFTER_S)
        for number in life.run.nodes:
            for test in TESTS:
                is_wrong = number == life.run.nodes[-1] and test == TESTS[-1]
                result, more = ("fail", f"{GPUS_PER_NODE - 2},3 sums of 4096 differ")
                if not is_wrong:
                    result, more = "pass", ","
                name = fleet.nodes[number].name
                lines.append(f"{name},{test},{result},{at:%Y-%m-%dT%H:%M:%SZ},{more}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
