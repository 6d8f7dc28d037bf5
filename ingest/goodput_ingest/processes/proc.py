"""A process as `/proc` describes it. What cannot be read is left out: processes end at any time."""

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goodput_ingest.processes.command_line import short_name, without_secrets

PROC = Path("/proc")
READ_MAX_BYTES = 65_536
TICKS_PER_S = 100  # USER_HZ of every Linux that runs NVIDIA's driver
STATE, START = 0, 19  # fields of /proc/PID/stat after the name
GONE = ("Z", "X")  # zombie, dead
SLURM_CGROUP = re.compile(
    r"/(?:[\w.-]*slurmstepd\.scope|slurm[\w.-]*/uid_\d+)/job_(\d{1,10})(?:/|$)", re.MULTILINE
)
POD_CGROUP = re.compile(r"kubepods\S*pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})")
CONTAINER_CGROUP = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
JOB_VARIABLE = "SLURM_JOB_ID"  # the only variable whose value is stored


@dataclass(frozen=True)
class Process:
    """A process. pid and ticks (its start since boot) are of no other one until the next boot.

    start_s: epoch seconds, to the second. name: its command in short. command: without secrets.
    job: of Slurm; pod: its uid in Kubernetes; container: its id.
    """

    pid: int
    ticks: int
    start_s: float
    user: str | None
    name: str
    command: str
    job: str | None
    pod: str | None
    container: str | None


def process(pid: int, proc: Path = PROC) -> Process | None:
    """Return what a process is; None where there is none, or it cannot be read."""
    folder = proc / str(pid)
    ticks, boot_s = start_ticks(pid, proc), boot_time_s(proc)
    if ticks is None or boot_s is None:
        return None
    arguments = _arguments(folder)
    cgroups = _text(folder / "cgroup")
    job = SLURM_CGROUP.search(cgroups)
    pod = POD_CGROUP.search(cgroups)
    containers = CONTAINER_CGROUP.findall(cgroups)
    return Process(
        pid=pid,
        ticks=ticks,
        start_s=boot_s + ticks / TICKS_PER_S,
        user=_user(folder),
        name=short_name(arguments),
        command=without_secrets(arguments),
        job=job[1] if job else environment(pid, proc).get(JOB_VARIABLE) or None,
        pod=pod[1].replace("_", "-") if pod else None,
        container=containers[-1] if containers else None,
    )


def start_ticks(pid: int, proc: Path = PROC) -> int | None:
    """Return when a living process started, ticks since boot; None where it is gone."""
    fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
    try:
        return None if fields[STATE] in GONE else int(fields[START])
    except (IndexError, ValueError):
        return None


def boot_time_s(proc: Path = PROC) -> float | None:
    """Return when the machine was booted, epoch seconds."""
    found = re.search(r"^btime (\d+)$", _text(proc / "stat"), re.MULTILINE)
    return float(found[1]) if found else None


def environment(pid: int, proc: Path = PROC) -> Mapping[str, str]:
    """Return the environment a process of ours began with; empty where it may not be read."""
    pairs = (line.partition("=") for line in _text(proc / str(pid) / "environ").split("\0"))
    return {name: value for name, _, value in pairs}


def _arguments(folder: Path) -> list[str]:
    """Return its arguments; of one that has none, its name in the kernel."""
    found = [part for part in _text(folder / "cmdline").split("\0") if part.strip()]
    return found or [_text(folder / "comm").strip()]


def _user(folder: Path) -> str | None:
    found = re.search(r"^Uid:\s+(\d+)", _text(folder / "status"), re.MULTILINE)
    if found is None:
        return None
    try:
        return pwd.getpwuid(int(found[1])).pw_name
    except (KeyError, OverflowError):
        return f"uid {found[1]}"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(READ_MAX_BYTES)).encode("utf-8", "replace").decode()
    except OSError:
        return ""
