"""Prometheus and what speaks its HTTP API: a live server, or saved answers to its queries."""

from goodput_ingest.prometheus_api.recorded import PrometheusRecording
from goodput_ingest.sources.prometheus.live import Prometheus

__all__ = ["Prometheus", "PrometheusRecording"]
