"""Settings of the machine, from `/proc`, `/sys` and `/etc`: the same for every process."""

import re
from functools import partial
from pathlib import Path

from goodput_ingest.sources.node_snapshot.found import Found, known, text
from goodput_ingest.sources.nvml.machine import sees_all_processes

SYSCTLS = (
    *("kernel.numa_balancing", "vm.swappiness", "vm.zone_reclaim_mode", "vm.dirty_ratio"),
    *("vm.dirty_background_ratio", "net.core.rmem_max", "net.core.wmem_max"),
    *("net.core.netdev_max_backlog", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    "net.ipv4.tcp_congestion_control",
)
BOOT_PARAMETERS = re.compile(
    r"(?:isolcpus|nohz_full|rcu_nocbs|default_hugepagesz|hugepagesz|hugepages|iommu|intel_iommu"
    r"|amd_iommu|transparent_hugepage|mitigations|numa_balancing|pci|pcie_aspm"
    r"|(?:intel_idle|processor)\.max_cstate|intel_pstate|amd_pstate)(?:=.*)?"
)
MODULES = ("nvidia_peermem", "gdrdrv", "nvidia_fs")
CPUS = "sys/devices/system/cpu/"
ROOT_COMPLEX = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
FABRIC_MANAGER = "nv-fabricmanager"[:15]  # as /proc/PID/comm has it
SWITCHES = "proc/driver/nvidia-nvswitch/devices/*"
# a file system that holds data; others are the kernel's own, or of one container
DATA = re.compile(
    r"nfs4?|lustre|gpfs|beegfs\w*|ceph|wekafs|cifs|fuse\..+|xfs|ext4|btrfs|zfs|overlay"
)
PRIVATE = re.compile(r"/(?:etc|proc|sys|dev|run|boot|snap|var/lib/\w+)(?:/.*)?")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- the mount point's name
# options that are settings; others name clients, servers, layers, or hold secrets
OPTIONS = re.compile(
    r"(?:ro|rw|noatime|relatime|nodiratime|sync|async|hard|soft|flock|localflock|noflock|noac|ac"
    r"|nolock|discard|nobarrier|largeio|inode64|lazystatfs)"
    r"|(?:vers|rsize|wsize|nconnect|proto|timeo|retrans|actimeo|lookupcache|size|data|barrier"
    r"|allocsize|stripe)=[\w.-]*"
)


def note(found: Found) -> None:
    """Note what the kernel, processors, memory, network and file systems are set to."""
    found.file("kernel.release", "proc/sys/kernel/osrelease")
    found.file("os.release", "etc/os-release", lambda read: field(read, "PRETTY_NAME=").strip('"'))
    found.file(
        "kernel.boot_parameters",
        "proc/cmdline",
        lambda read: " ".join(filter(BOOT_PARAMETERS.fullmatch, read.split())) or "none",
    )
    for name in SYSCTLS:
        found.file(name, f"proc/sys/{name.replace('.', '/')}", lambda read: " ".join(read.split()))
    _processors(found)
    _memory(found)
    _network(found)
    for module in MODULES:
        has_it = (found.root / "sys/module" / module).exists()
        found.settings[f"module.{module}"] = "loaded" if has_it else "not loaded"
    _fabric(found)
    found.note_each("mount", lambda: _mounts(found))


def root_complex(device: Path) -> str:
    """Return the PCI root complex of a device in `/sys`; raises OSError."""
    match = ROOT_COMPLEX.search(str(device.resolve(strict=True)))
    return match[0] if match else "unknown"


def _processors(found: Found) -> None:
    found.file("cpu.model", "proc/cpuinfo", lambda read: field(read, "model name"))
    found.file("cpu.online", f"{CPUS}online")
    found.file("cpu.isolated", f"{CPUS}isolated", lambda read: read.strip() or "none")
    found.file("cpu.smt", f"{CPUS}smt/control")
    cpus = {path.name.removeprefix("cpu"): path for path in found.paths(f"{CPUS}cpu[0-9]*")}
    governors = {number: path / "cpufreq/scaling_governor" for number, path in cpus.items()}
    found.files("cpu.governor", governors)
    states = {path.name: path / "disable" for path in found.paths(f"{CPUS}cpu0/cpuidle/state*")}
    found.files("cpu.idle_states_disabled", states)
    nodes = found.paths("sys/devices/system/node/node[0-9]*")
    lists = {path.name.removeprefix("node"): path / "cpulist" for path in nodes}
    found.files("numa.cpus", lists)


def _memory(found: Found) -> None:
    for name, line in (("memory.total_gib", "MemTotal"), ("memory.swap_gib", "SwapTotal")):
        found.file(name, "proc/meminfo", partial(_gib, name=line))
    sizes = found.paths("sys/kernel/mm/hugepages/hugepages-*")
    pages = {path.name.removeprefix("hugepages-"): path / "nr_hugepages" for path in sizes}
    found.files("memory.huge_pages", pages)
    for name in ("enabled", "defrag"):
        found.file(
            f"memory.transparent_huge_pages.{name}",
            f"sys/kernel/mm/transparent_hugepage/{name}",
            lambda read: read.partition("[")[2].partition("]")[0],
        )


def _network(found: Found) -> None:
    names = {path.name: path for path in found.paths("sys/class/net/*") if path.name != "lo"}
    found.settings["net.interfaces"] = ",".join(names) or "none"
    cards = {name: path for name, path in names.items() if (path / "device").exists()}
    for name in ("mtu", "speed"):
        found.files(f"net.{name}", {card: path / name for card, path in cards.items()})
    devices = {path.name: path for path in found.paths("sys/class/infiniband/*")}
    ports = {f"{p.parts[-3]}:{p.name}": p for p in found.paths("sys/class/infiniband/*/ports/*")}
    found.settings["infiniband.ports"] = ",".join(ports) or "none"
    if not devices:
        return
    for name in ("state", "rate", "link_layer"):
        states = {key: path / name for key, path in ports.items()}
        found.files(f"infiniband.{name}", states, lambda read: read.rpartition(": ")[2].strip())
    for name, file in (("firmware", "fw_ver"), ("board", "board_id"), ("numa", "device/numa_node")):
        found.files(f"infiniband.{name}", {key: path / file for key, path in devices.items()})
    roots = {key: known(partial(root_complex, path / "device")) for key, path in devices.items()}
    found.of_each("infiniband.pci_root", roots)


def _fabric(found: Found) -> None:
    """Note NVSwitches, and whether their manager runs, which takes sight of all processes."""
    found.settings["fabric.switches"] = str(len(found.paths(SWITCHES)))
    commands = found.root.glob("proc/[0-9]*/comm")
    if any(known(partial(text, path)).strip() == FABRIC_MANAGER for path in commands):
        found.settings["fabric.manager"] = "running"
    elif sees_all_processes(found.root / "proc"):
        found.settings["fabric.manager"] = "not running"
    else:
        found.unknown["fabric.manager"] = "not in the machine's own PID namespace"


def _mounts(found: Found) -> dict[str, str]:
    """Return the file systems of data by their place: the kind, and the options."""
    settings: dict[str, str] = {}
    for line in text(found.root / "proc/self/mounts").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        is_data = DATA.fullmatch(kind) is not None and PRIVATE.fullmatch(place) is None
        if is_data or place == SHARED_MEMORY:
            chosen = [option for option in options.split(",") if OPTIONS.fullmatch(option)]
            settings[f"mount:{place}"] = f"{kind} {','.join(chosen)}"
    return settings


def field(read: str, name: str) -> str:
    """Return what a line of a file in `/proc` or `/sys` says behind a name; raises ValueError."""
    match = re.search(rf"^{name}\s*:?\s*(.+)$", read, re.MULTILINE)
    if match is None:
        raise ValueError(f"the file has no {name}")
    return match[1].strip()


def _gib(read: str, name: str) -> str:
    kibibytes = field(read, name).removesuffix("kB")
    return str(round(int(kibibytes) / 2**20))
