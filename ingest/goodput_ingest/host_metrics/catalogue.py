"""Which series of node_exporter (0.16 and later) are read, and as which columns.

A stock node_exporter exports all of them; `infiniband` and `netclass` are among its collectors that
are on by default, and give nothing on a node without such devices. Its other series are left out.
"""

import csv
from importlib.resources import files
from typing import Final

from goodput_ingest.gpu_metrics import labels as gpu_labels

CPU: Final = "node_cpu_seconds_total"
IDENTITY: Final = "node_uname_info"
"""Its label nodename is the host name, where Prometheus may know the node by an address alone."""


def _columns(of: str) -> dict[str, str]:
    """Return the columns that series become; of: which part of `series.csv`."""
    text = (files("goodput_ingest.host_metrics") / "series.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row["series"]: row["column"] for row in rows if row["of"] == of}


NODE, DISKS, ETHERNET, INFINIBAND = map(_columns, ("NODE", "DISKS", "ETHERNET", "INFINIBAND"))
INFINIBAND_ACTIVE: Final = 4
"""State of a port that carries traffic; 1 is down, 2 initialising, 3 armed."""

CPU_MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
NOT_BUSY: Final = ("idle", "iowait")
WITHIN_DISKS: Final = r"^(?:dm-|md|loop|ram|zram|sr|fd|nbd)|^(?:[hsv]|xv)d[a-z]+\d+$|p\d+$"
"""Devices on top of a disk or inside it, whose bytes are the disk's, and those that are none."""
VIRTUAL_INTERFACE: Final = (
    r"^(?:lo$|docker|veth|br-|virbr|cni|flannel|cali|tunl|dummy|kube|nodelocaldns|vxlan|cilium|lxc|"
    r"ifb|tap|tun|vnet|wg|bond|team|ib)|[.@]"
)
"""Interfaces on top of others (their bytes are those), and InfiniBand's, read as ports."""

NAMES: Final = frozenset({CPU, IDENTITY, *NODE, *DISKS, *ETHERNET, *INFINIBAND})
LABELS: Final = frozenset(
    {*gpu_labels.NODE, gpu_labels.INSTANCE, gpu_labels.SCRAPE_JOB, "cpu", "device", "mode", "port"}
)


def is_host_metric(name: str) -> bool:
    """Say whether the name is one of node_exporter that is read."""
    return name in NAMES
