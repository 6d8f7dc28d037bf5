"""Metrics that senders post to `goodput serve`: Prometheus remote-write, OTLP over HTTP."""
