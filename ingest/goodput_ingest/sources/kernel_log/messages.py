"""Parses messages of NVIDIA's kernel driver (an Xid, an SXid, a GPU off the bus), and OOM kills.

Forms of the lines: telemetry notes, section 5. NVSwitch faults (SXid) have numbers of their own.
"""

import re
from dataclasses import dataclass

from goodput_ingest.formats import syslog
from goodput_ingest.formats.json_text import json_lines

OFF_THE_BUS_XID = 79

_PCI = (
    r"(?:PCI:)?(?P<pci>(?:[0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
    r"(?:\.[0-7])?(?![0-9a-fA-F]|[.:][0-9a-fA-F]))"
)
XID = re.compile(
    rf"NVRM: Xid \({_PCI}[^)]{{0,100}}\)[^:]{{0,100}}: (?P<code>\d{{1,6}})(?!\d),? ?(?P<rest>.*)"
)
SXID = re.compile(rf"SXid \({_PCI}[^)]{{0,100}}\): (?P<code>\d{{1,6}})(?!\d),? ?(?P<rest>.*)")
OFF_THE_BUS = "fallen off the bus"
NOTICE = re.compile(rf"NVRM: (?:The NVIDIA )?GPU (?:at )?{_PCI}")
LOOKS_LIKE_XID = re.compile(r"\bS?Xid\s*\(|NVRM:\s*S?Xid\b")
RECOVERY_XID = 154  # the driver's advice, in words: None, GPU Reset Required, Node Reboot Required
ADVISES = re.compile(r"\bto 0x[0-9a-f]+ \((?!None\))", re.IGNORECASE)
PID = re.compile(r"\bpid='?(?P<pid>\d+)'?")
PROCESS = re.compile(r"\bname=(?P<name>[^,<]+)")
# mm/oom_kill.c; "Memory cgroup out of memory" where a container or a Slurm job was at its limit
OOM_KILL = re.compile(
    r"(?:Out of memory|Memory cgroup out of memory)(?: \(\w+\))?: Kill(?:ed)? process "
    r"(?P<pid>\d{1,10}) \((?P<name>[^)]{0,100})\)"
)
LOOKS_LIKE_OOM_KILL = re.compile(r"\b[Oo]ut of memory(?: \(\w+\))?: Kill(?:ed)?\b")


@dataclass(frozen=True)
class Finding:
    """An error of a GPU or a switch in a message."""

    kind: str
    code: int
    pci: str | None
    pid: str | None = None
    process_name: str | None = None


def finding(message: str, pci_of_notice: str | None) -> Finding | None:
    """Return what happened, from the text of a message.

    pci_of_notice: the GPU that lines just before it named, for notices over several lines.
    """
    if repeated := syslog.REPEATED.fullmatch(message):
        message = repeated["message"]
    for kind, pattern in (("sxid", SXID), ("xid", XID)):
        if match := pattern.search(message):
            is_advice = int(match["code"]) == RECOVERY_XID and ADVISES.search(match["rest"])
            pid, process = PID.search(match["rest"]), PROCESS.search(match["rest"])
            return Finding(
                "reset_required" if is_advice else kind,
                int(match["code"]),
                match["pci"],
                pid["pid"] if pid else None,
                json_lines.printable(process["name"].strip(), 100) if process else None,
            )
    if OFF_THE_BUS in message and "NVRM:" in message:
        notice = NOTICE.search(message)
        return Finding("off_the_bus", OFF_THE_BUS_XID, notice["pci"] if notice else pci_of_notice)
    return None
