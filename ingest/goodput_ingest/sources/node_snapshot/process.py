"""Settings of one process: its environment, limits, cgroup, and the processors it may use."""

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
    "Max processes": "limit.nproc",
    "Max core file size": "limit.core",
}
CGROUP_FILES = ("cpu.max", "memory.max", "memory.high", "cpuset.cpus.effective", "pids.max")
COLUMNS = re.compile(r"\s{2,}")
NCCL_FILE = "etc/nccl.conf"
VALUE_MAX_CHARS = 300


def variables(found: Found, pid: int) -> Mapping[str, str]:
    """Return the environment that a process began with; raises OSError where it may not be read."""
    text(found.root / f"proc/{pid}/environ")
    return environment(pid, found.root / "proc")


def note(found: Found, pid: str, given: Mapping[str, str]) -> None:
    """Note the settings of a process. pid: `self` or its number; given: its environment."""
    for name, value in {**_of_nccl_file(found.root), **given}.items():
        if VARIABLES.fullmatch(name):
            is_secret = SECRET_NAME.search(name) is not None
            shown = HIDDEN if is_secret else without_secrets([value])[:VALUE_MAX_CHARS]
            found.settings[f"env:{name}"] = shown
    found.note_each("limit", lambda: _limits(text(found.root / "proc" / pid / "limits")))
    status = f"proc/{pid}/status"
    found.file("process.cpus", status, lambda read: field(read, "Cpus_allowed_list"))
    found.file("process.numa", status, lambda read: field(read, "Mems_allowed_list"))
    _cgroup(found, pid)


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
    lines = (COLUMNS.split(line) for line in read.splitlines())
    return {LIMITS[name]: soft for name, soft, *_ in lines if name in LIMITS}


def _cgroup(found: Found, pid: str) -> None:
    def read(name: str) -> str:
        lines = text(found.root / "proc" / pid / "cgroup").splitlines()
        own = next((line[3:] for line in lines if line.startswith("0::/")), None)
        if own is None:
            raise ValueError("cgroups of version 1 are not read")
        return text(found.root / f"sys/fs/cgroup{own}" / name).strip()

    for name in CGROUP_FILES:
        found.note(f"cgroup.{name}", partial(read, name))
    found.note("cgroup.is_throttled", lambda: _throttled(read("cpu.stat")))


def _throttled(read: str) -> str:
    return "no" if field(read, "nr_throttled") == "0" else "yes"
