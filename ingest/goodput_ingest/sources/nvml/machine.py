"""Processors, memory and disks of the machine, from `/proc`."""

import re
from pathlib import Path
from typing import Any

PROC = Path("/proc")
INIT_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel: no container
CPU_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
MEMORY = {
    "MemTotal": "memtotal_kb",
    "MemAvailable": "memavailable_kb",
    "Cached": "cached_kb",
    "Dirty": "dirty_kb",
    "Writeback": "writeback_kb",
}
# whole disks: a partition would count twice, and so would a mapper over a disk
DISK = re.compile(r"sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+")


def figures(proc: Path = PROC) -> dict[str, Any]:
    """Return counters of processors and disks, load and memory; what cannot be read is left out."""
    found: dict[str, Any] = {}
    for line in _lines(proc / "stat"):
        if line.startswith("cpu "):
            ticks = map(int, line.split()[1:])
            found["cpu_jiffies"] = dict(zip(CPU_STATES, ticks, strict=False))
    if load := _lines(proc / "loadavg"):
        found["load1"] = float(load[0].split()[0])
    for line in _lines(proc / "meminfo"):
        name, _, rest = line.partition(":")
        if name in MEMORY:
            found[MEMORY[name]] = int(rest.split()[0])
    disks = [line.split() for line in _lines(proc / "diskstats")]
    whole = [disk for disk in disks if len(disk) > 9 and DISK.fullmatch(disk[2])]
    if whole:
        found["disk_read_sectors"] = sum(int(disk[5]) for disk in whole)
        found["disk_write_sectors"] = sum(int(disk[9]) for disk in whole)
        found["disk_reads"] = sum(int(disk[3]) for disk in whole)
        if all(len(disk) > 12 for disk in whole):
            found["disk_busy_ms"] = sum(int(disk[12]) for disk in whole)
    return found


def boot_id(proc: Path = PROC) -> str:
    """Return the id of this boot, empty where it cannot be read."""
    return next(iter(_lines(proc / "sys/kernel/random/boot_id")), "")


def sees_all_processes(proc: Path = PROC) -> bool:
    """Say whether we run in the machine's own PID namespace, so that no process hides from us."""
    try:
        return str((proc / "self/ns/pid").readlink()) == INIT_PID_NAMESPACE
    except OSError:
        return False


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
