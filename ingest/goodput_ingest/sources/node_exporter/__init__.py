"""Prometheus's node_exporter: CPU, memory, disks and network ports of nodes."""
