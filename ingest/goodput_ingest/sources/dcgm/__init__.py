"""GPU exporters that print Prometheus text: those of gpu_metrics/exporters.csv."""
