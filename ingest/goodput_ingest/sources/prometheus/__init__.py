"""Prometheus and what speaks its HTTP API: a live server, or saved answers to its queries."""

from goodput_ingest.sources.prometheus.live import Prometheus
from goodput_ingest.sources.prometheus.recorded import PrometheusRecording

__all__ = ["Prometheus", "PrometheusRecording"]
