"""Prometheus and servers with its HTTP API: live, or saved answers to queries."""

from goodput_ingest.prometheus_api.recorded import PrometheusRecording
from goodput_ingest.sources.prometheus.live import Prometheus

__all__ = ["Prometheus", "PrometheusRecording"]
