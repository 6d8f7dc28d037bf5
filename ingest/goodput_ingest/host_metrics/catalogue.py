"""Which series of node_exporter (0.16 and later) are read, and as which columns.

A stock node_exporter exports all of them; `infiniband` and `netclass` are among its collectors that
are on by default, and give nothing on a node without such devices. Its other series are left out.
"""

from typing import Final

from goodput_ingest.gpu_metrics import labels as gpu_labels

CPU: Final = "node_cpu_seconds_total"
IDENTITY: Final = "node_uname_info"
"""Its label nodename is the host name, where Prometheus may know the node by an address alone."""

NODE: Final = {
    "node_load1": "load1",
    "node_memory_MemTotal_bytes": "memory_total_bytes",
    "node_memory_MemAvailable_bytes": "memory_available_bytes",
    "node_memory_Cached_bytes": "page_cache_bytes",
    "node_memory_Dirty_bytes": "dirty_bytes",
    "node_memory_SwapTotal_bytes": "swap_total_bytes",
    "node_memory_SwapFree_bytes": "swap_free_bytes",
    "node_netstat_Tcp_OutSegs": "tcp_sent_segments",
    "node_netstat_Tcp_RetransSegs": "tcp_retransmitted_segments",
}
DISKS: Final = {
    "node_disk_read_bytes_total": "disk_read_bytes",
    "node_disk_written_bytes_total": "disk_write_bytes",
    "node_disk_io_time_seconds_total": "disk_busy_s",
}
ETHERNET: Final = {
    "node_network_receive_bytes_total": "rx_bytes",
    "node_network_transmit_bytes_total": "tx_bytes",
    "node_network_receive_errs_total": "rx_errors",
    "node_network_transmit_errs_total": "tx_errors",
    "node_network_receive_drop_total": "rx_drops",
    "node_network_transmit_drop_total": "tx_drops",
    "node_network_carrier_down_changes_total": "link_downs",
    "node_network_up": "is_up",
    "node_network_speed_bytes": "speed_bytes_per_s",
}
INFINIBAND: Final = {
    "node_infiniband_port_data_received_bytes_total": "rx_bytes",
    "node_infiniband_port_data_transmitted_bytes_total": "tx_bytes",
    "node_infiniband_port_errors_received_total": "rx_errors",
    "node_infiniband_port_discards_transmitted_total": "tx_drops",
    "node_infiniband_symbol_error_total": "symbol_errors",
    "node_infiniband_link_error_recovery_total": "link_recoveries",
    "node_infiniband_link_downed_total": "link_downs",
    "node_infiniband_state_id": "is_up",
    "node_infiniband_rate_bytes_per_second": "speed_bytes_per_s",
}
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
