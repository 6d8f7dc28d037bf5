"""Formats that several sources share: text, JSON, CSV, times, Prometheus' text format."""
