"""NCCL Inspector logs of the runs that had the plugin on: verbose, a file a process."""

from pathlib import Path

import numpy as np

from goodput_synthetic.fleet.fleet import Fleet
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.training import Attempt
from goodput_synthetic.fleet.written.events import pid, write_gzip

MESSAGE_BYTES = 268_435_456
TRANSFER_US = 2_900
SETTLE_MS = 40  # what a step still does after its last collective


def write(folder: Path, fleet: Fleet, life: Life, start_s: int) -> None:
    """Write the logs of a run; nothing where it never stepped."""
    ranks = len(life.run.units)
    for attempt in life.attempts:
        if not len(attempt.steps):
            continue
        where = folder / f"{life.request.run_id.replace('/', '-')}-{attempt.number}"
        where.mkdir(parents=True, exist_ok=True)
        for rank in range(ranks):
            host = fleet.nodes[int(fleet.unit_node[life.run.units[rank]])].name
            lines = _lines(life, attempt, rank, host, start_s)
            write_gzip(where / f"{host}-pid{pid(life, rank)}.log.gz", ["\n".join(lines), "\n"])


def _lines(life: Life, attempt: Attempt, rank: int, host: str, start_s: int) -> list[str]:
    """Return an AllReduce a step: it ends for all at once, and begins when a rank arrives."""
    rng = np.random.default_rng([life.request.seed, 12, rank])
    ranks = len(life.run.units)
    nodes = len(life.run.nodes)
    steps = attempt.steps
    own = TRANSFER_US + rng.integers(0, 900, len(steps))
    waited = np.zeros(len(steps), dtype=np.int64) if rank in life.special else steps.slow * 1_000
    took = own + waited
    end_us = start_s * 1_000_000 + (steps.end - SETTLE_MS) * 1_000
    head = (
        f'{{"header":{{"id":"0x{life.request.seed:012x}","comm_name":"default_pg","rank":{rank},'
        f'"n_ranks":{ranks},"nnodes":{nodes}}},"metadata":{{"inspector_output_format_version":'
        '"v4.0","git_rev":"v2.28.9-1","rec_mechanism":"nccl_profiler_interface",'
    )
    lines = []
    for number, (stop, exec_us) in enumerate(zip(end_us.tolist(), took.tolist(), strict=True)):
        start = stop - exec_us
        algbw = MESSAGE_BYTES / exec_us / 1e3
        lines.append(
            f'{head}"dump_timestamp_us":{stop + 900},"hostname":"{host}","pid":{pid(life, rank)}}},'
            f'"coll_perf":{{"coll":"AllReduce","coll_sn":{number},"coll_msg_size_bytes":'
            f'{MESSAGE_BYTES},"coll_exec_time_us":{exec_us},"coll_timing_source":"kernel_gpu",'
            f'"coll_algobw_gbs":{algbw:.6f},"coll_busbw_gbs":{algbw * 2 * (ranks - 1) / ranks:.6f},'
            f'"event_trace_ts":{{"coll_start_ts":{start - 30},"coll_stop_ts":{start - 10},'
            f'"kernel_events":[{{"channel_id":0,"kernel_start_ts":{start},"kernel_stop_ts":{stop},'
            f'"kernel_record_ts":{stop}}}]}}}}}}'
        )
    return lines
