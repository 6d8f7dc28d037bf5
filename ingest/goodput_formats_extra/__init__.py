"""Formats that few sites have: MLPerf, operation traces, OpenTelemetry, Google, Kineto."""
