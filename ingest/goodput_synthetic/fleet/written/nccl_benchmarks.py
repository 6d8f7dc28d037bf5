"""Weekly runs of nccl-tests on some nodes before the evidence begins: a file of `-J` a run.

From a date on one node is slower than the others: NVLink SHARP, the reduction in the switch, is off
there since. The times are local ones without a zone, as nccl-tests writes them; here in UTC.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, MODELS, PCI_BUSES, Fleet, Node

WEEKS, SLOW_WEEKS = 7, 3
NODES_OF_POOL = 4
SLOW_NODE = 1  # of those that are tested
BEFORE = timedelta(hours=8)  # from the last run to the start of the fleet
# bytes, and the bus bandwidth of eight ranks in 1e9 bytes/s, with and without NVLink SHARP
SIZES = (1 << 24, 1 << 27, 1 << 30, 1 << 33)
PAIR_SIZES, OF_PAIR = (1 << 22, 1 << 25, 1 << 28, 1 << 31), (61, 118, 158, 171)  # of two nodes
WITH_SHARP = {"h100": (234, 401, 466, 479), "h200": (240, 412, 468, 480)}
WITHOUT_SHARP = (188, 312, 355, 365)
NOISE = 0.006
COMMAND = ("./build/all_reduce_perf", "-b", "16M", "-e", "8G", "-f", "8", "-g", "1")
CLOCK = "%Y-%m-%d %H:%M:%S"
Curve = tuple[tuple[int, ...], tuple[int, ...]]


def write(folder: Path, fleet: Fleet, start: datetime, seed: int) -> None:
    """Write the runs of all weeks."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, node in enumerate(tested(fleet)):
        for week in range(WEEKS):
            rng = np.random.default_rng([seed, 31, number, week])
            at = _time_of(start, number, week)
            is_slow = number == SLOW_NODE and week >= WEEKS - SLOW_WEEKS
            curve = WITHOUT_SHARP if is_slow else WITH_SHARP[node.model]
            _write_run(folder, [node], at, (SIZES, curve), rng)


def write_pairs(folder: Path, fleet: Fleet, start: datetime, seed: int) -> None:
    """Write one run over each two nodes that are tested every week."""
    nodes = tested(fleet)
    for number, pair in enumerate(zip(nodes[::2], nodes[1::2], strict=False)):
        rng, at = np.random.default_rng([seed, 34, number]), _time_of(start, number, WEEKS - 1)
        _write_run(folder, [*pair], at + timedelta(hours=1), (PAIR_SIZES, OF_PAIR), rng)


def _write_run(folder: Path, nodes: list[Node], at: datetime, curve: Curve, rng: Any) -> None:
    run = _run(nodes, at, curve, rng)
    path = folder / f"{'+'.join(node.name for node in nodes)}-{at:%Y%m%d}.json"
    path.write_text(json.dumps(run) + "\n", encoding="utf-8", newline="\n")


def tested(fleet: Fleet) -> list[Node]:
    """Return the nodes that are tested every week: the first ones of each pool."""
    return [
        fleet.nodes[int(n)] for pool in WITH_SHARP for n in fleet.pool_nodes(pool)[:NODES_OF_POOL]
    ]


def slow_node(fleet: Fleet, start: datetime) -> tuple[str, datetime]:
    """Return the name of the node that is slower since a date, and when that was first seen."""
    return tested(fleet)[SLOW_NODE].name, _time_of(start, SLOW_NODE, WEEKS - SLOW_WEEKS)


def _time_of(start: datetime, number: int, week: int) -> datetime:
    return start - BEFORE - timedelta(weeks=WEEKS - 1 - week) + timedelta(minutes=4 * number)


def _run(nodes: list[Node], at: datetime, curve: Curve, rng: Any) -> dict[str, Any]:
    sizes, ranks = curve[0], len(nodes) * GPUS_PER_NODE
    results = [_result(size, of, ranks, rng) for size, of in zip(*curve, strict=True)]
    halves = [r[half]["bus_bw"] for r in results for half in ("out_of_place", "in_place")]
    return {
        "version": 2,
        "start_time": at.strftime(CLOCK),
        "args": [*COMMAND, "-J", f"{nodes[0].name}.json"],
        "env": [],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1, "ngpus": 1, "minimum_bytes": sizes[0], "maximum_bytes": sizes[-1],
            "step_factor": 8, "warmup_iters": 1, "iterations": 20, "aggregated_iterations": 1,
            "validation": 1, "graph": 0, "blocking_collectives": "false",
            "per_iter_timing": "false", "parallel_init": "false",
            "devices": [_device(nodes[rank // GPUS_PER_NODE], rank) for rank in range(ranks)],
        },
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {
            "bandwidth": round(float(np.mean(halves)), 6), "okay": "unchecked",
        },
        "errors": [],
        "end_time": (at + timedelta(seconds=40)).strftime(CLOCK),
    }  # fmt: skip


def _device(node: Node, rank: int) -> dict[str, Any]:
    local = rank % GPUS_PER_NODE
    return {
        "rank": rank, "group": 0, "pid": 2_100 + rank, "hostname": node.name, "device": local,
        "device_hex": f"0000:{PCI_BUSES[local]}:00", "device_info": MODELS[node.model],
    }  # fmt: skip


def _result(size: int, bus_gbs: float, ranks: int, rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {
        "size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
    }  # fmt: skip
    for half in ("out_of_place", "in_place"):
        of_half = bus_gbs * float(rng.normal(1, NOISE))
        alg_gbs = of_half * ranks / (2 * (ranks - 1))
        found[half] = {
            "time": round(size / alg_gbs / 1e3, 6), "alg_bw": round(alg_gbs, 6),
            "bus_bw": round(of_half, 6), "nwrong": 0.0,
        }  # fmt: skip
    return found | {"actual_iterations": 20, "experiment_name": ""}
