"""Settings of one process: its environment, limits, cgroup, and the processors it may use."""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from goodput_ingest.processes.command_line import HIDDEN, SECRET_NAME, without_secrets
from goodput_ingest.processes.proc import environment
from goodput_ingest.sources.node_snapshot.found import Found, text
from goodput_ingest.sources.node_snapshot.host import field

VARIABLES = re.compile(
    r"(?:NCCL|UCX|OMP|CUDA|GLOO|TORCH_NCCL|PYTORCH_CUDA|PYTORCH|KMP|MKL|FI|NVSHMEM)_[A-Z0-9_]{1,80}"
)
LIMITS = {
    "Max locked memory": "limit.memlock",
    "Max open files": "limit.nofile",
    "Max stack size": "limit.stack",
}
CGROUP_FILES = ("cpu.max", "memory.max", "memory.high", "cpuset.cpus.effective", "pids.max")
NCCL_FILE = "etc/nccl.conf"
VALUE_MAX_CHARS = 300


def note(found: Found, pid: int | None) -> Mapping[str, str]:
    """Note the settings of a process, None: of this one; return its environment."""
    given = os.environ if pid is None else environment(pid, found.root / "proc")
    if not any(given):
        found.unknown["env"] = "it may not be read"
    for name, value in {**_of_nccl_file(found.root), **given}.items():
        if VARIABLES.fullmatch(name):
            is_secret = SECRET_NAME.search(name) is not None
            shown = HIDDEN if is_secret else without_secrets([value])[:VALUE_MAX_CHARS]
            found.settings[f"env:{name}"] = shown
    own = f"proc/{pid or 'self'}"
    found.note_each("limit", lambda: _limits(text(found.root / own / "limits")))
    for name, line in (
        ("process.cpus", "Cpus_allowed_list"),
        ("process.numa", "Mems_allowed_list"),
    ):
        found.file(name, f"{own}/status", partial(field, name=line))
    _cgroup(found, found.root / own / "cgroup")
    return given


def _of_nccl_file(root: Path) -> dict[str, str]:
    """Return the variables that NCCL takes from its file where the environment has none."""
    try:
        lines = text(root / NCCL_FILE).splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def _limits(read: str) -> dict[str, str]:
    """Return the soft limits of a process by setting."""
    return {name: re.split(r"\s{2,}", field(read, line))[0] for line, name in LIMITS.items()}


def _cgroup(found: Found, membership: Path) -> None:
    def read(name: str) -> str:
        own = [line[3:] for line in text(membership).splitlines() if line.startswith("0::/")]
        if not own:
            raise ValueError("cgroups of version 1 are not read")
        return text(found.root / f"sys/fs/cgroup{own[0]}" / name).strip()

    for name in CGROUP_FILES:
        found.note(f"cgroup.{name}", partial(read, name))
    found.note("cgroup.times_throttled", lambda: field(read("cpu.stat"), "nr_throttled"))
