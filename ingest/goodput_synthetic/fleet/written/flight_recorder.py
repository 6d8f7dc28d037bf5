"""Dumps of PyTorch's Flight Recorder of gangs that hang: a file a rank, of its last operations."""

import json
from pathlib import Path

from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life

DUMPED_MS = 420 * SECOND  # after the last step: when somebody, or the watchdog, asked for dumps
LATE_MS = 2 * SECOND
TIMEOUT_MS = 600_000
SHARDS = [[268_435_456]]
GROUPS = {"0": "default_pg", "1": "metrics"}


def write(folder: Path, lives: list[Life], start_s: int, until_ms: int) -> None:
    """Write the dumps of all gangs that hang and of which all ranks send events."""
    for life in lives:
        attempt, request = life.attempts[-1] if life.attempts else None, life.request
        if attempt is None or not len(attempt.steps) or request.kind != "hang":
            continue
        hung = attempt.work_end + LATE_MS
        if request.reports != "all" or hung + DUMPED_MS > min(life.end, until_ms):
            continue
        of_run = folder / f"{request.run_id.replace('/', '-')}-{life.run.number}"
        of_run.mkdir(parents=True, exist_ok=True)
        ranks, last = len(life.run.units), int(attempt.steps.number[-1])
        for rank in range(ranks):
            dump = _dump(ranks, last, start_s * SECOND + hung, is_missing=rank == ranks // 3)
            path = of_run / f"nccl_trace_rank_{rank}.json"
            path.write_text(json.dumps(dump, sort_keys=True) + "\n", "utf-8", newline="\n")


def _dump(ranks: int, last: int, hung_ms: int, *, is_missing: bool) -> dict[str, object]:
    """Return what a rank recorded: one rank never launches the all-reduce that the others wait in.

    A thread of each rank goes on to exchange metrics.
    """
    launched = last if is_missing else last + 1
    entries = [_entry(0, last, hung_ms - 30 * SECOND, is_completed=True)]
    if not is_missing:
        entries.append(_entry(0, last + 1, hung_ms, is_completed=False))
    entries.append(_entry(1, 2 * last, hung_ms + DUMPED_MS - SECOND, is_completed=True))
    members = str(list(range(ranks)))
    status = {"0": (launched, launched, last), "1": (2 * last,) * 3}
    names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
    return {
        "comm_lib_version": "2.28.9",
        "entries": [entry | {"record_id": number} for number, entry in enumerate(entries)],
        "pg_config": {
            number: {"name": number, "desc": name, "ranks": members}
            for number, name in GROUPS.items()
        },
        "pg_status": {
            group: {name: str(value) for name, value in zip(names, values, strict=True)}
            for group, values in status.items()
        },
        "version": "2.10",
    }


def _entry(group: int, number: int, at_ms: int, *, is_completed: bool) -> dict[str, object]:
    at_ns = at_ms * 1_000_000
    return {
        "collective_seq_id": number, "frames": [], "input_dtypes": ["BFloat16"],
        "input_sizes": SHARDS, "is_p2p": False, "op_id": number, "output_dtypes": ["BFloat16"],
        "output_sizes": SHARDS, "p2p_seq_id": 0, "pg_id": group,
        "process_group": [str(group), GROUPS[str(group)]], "profiling_name": "nccl:all_reduce",
        "retired": is_completed, "state": "completed" if is_completed else "started",
        "time_created_ns": at_ns, "time_discovered_started_ns": at_ns + 100_000_000,
        "time_discovered_completed_ns": at_ns + 200_000_000 if is_completed else None,
        "timeout_ms": TIMEOUT_MS,
    }  # fmt: skip
