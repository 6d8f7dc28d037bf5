"""OpenTelemetry spans of training frameworks."""

from goodput_formats_extra.otel_spans.source import OtelSpans

__all__ = ["OtelSpans"]
