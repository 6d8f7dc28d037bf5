"""Kubernetes by kube-state-metrics through Prometheus: live, or from saved answers."""

from goodput_ingest.sources.kubernetes.live import Kubernetes
from goodput_ingest.sources.kubernetes.recorded import KubernetesRecording

__all__ = ["Kubernetes", "KubernetesRecording"]
