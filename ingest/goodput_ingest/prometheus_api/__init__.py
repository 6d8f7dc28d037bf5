"""Prometheus' HTTP API: asking it, and reading its answers, live or recorded."""
