"""Kubernetes as kube-state-metrics tells it through Prometheus: live, or from saved answers."""

from goodput_ingest.sources.kubernetes.live import Kubernetes
from goodput_ingest.sources.kubernetes.recorded import KubernetesRecording

__all__ = ["Kubernetes", "KubernetesRecording"]
