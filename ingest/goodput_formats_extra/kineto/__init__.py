"""Traces of the PyTorch profiler."""

from goodput_formats_extra.kineto.source import Kineto

__all__ = ["Kineto"]
