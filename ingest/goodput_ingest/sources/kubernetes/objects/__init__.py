"""Kubernetes objects as `kubectl get ... -o json` writes them."""

from goodput_ingest.sources.kubernetes.objects.reading import read, recognises

__all__ = ["read", "recognises"]
