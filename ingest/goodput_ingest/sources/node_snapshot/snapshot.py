"""Takes a snapshot of a node and a process on it, as one line of JSON.

    {"goodput_snapshot": 1, "node": "n1", "ts": 1795177770, "run_id": "train",
     "is_container": false, "settings": {"vm.swappiness": "10"},
     "unknown": {"gpu": "Driver Not Loaded"}}

Names are sorted. A setting is a text, as the system has it; one that could not be read is in
`unknown`, with the reason: `gpu`, `env`, `limit` and `mount` where none of theirs could.
"""

import json
import time
from pathlib import Path
from typing import Any

from goodput_ingest.sources.node_snapshot import gpus, host, process
from goodput_ingest.sources.node_snapshot.found import Found
from goodput_ingest.sources.nvml.machine import sees_all_processes

VERSION = 1


def take(
    node: str,
    run_id: str | None = None,
    pid: int | None = None,
    root: Path = Path("/"),
    module: Any = None,
) -> bytes:
    """Return a snapshot with its end of line; whatever cannot be read is unknown in it.

    run_id: the run whose process it is; None: `RUN_ID` or `SLURM_JOB_ID` of its environment.
    pid: the process; None: this one. root, module: other files than the machine's, a `pynvml`.
    """
    found = Found(root)
    host.note(found)
    gpus.note(found, module)
    given = process.note(found, pid)
    row = {
        "goodput_snapshot": VERSION,
        "node": node,
        "ts": int(time.time()),
        "run_id": run_id or given.get("RUN_ID") or given.get("SLURM_JOB_ID"),
        "is_container": not sees_all_processes(root / "proc"),
        "settings": dict(sorted(found.settings.items())),
        "unknown": dict(sorted(found.unknown.items())),
    }
    return json.dumps(row, ensure_ascii=True).encode() + b"\n"
