"""The text format of Prometheus exporters, parsed in blocks."""
