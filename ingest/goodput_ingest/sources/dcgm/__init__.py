"""GPU exporters that print Prometheus text: DCGM exporter, nvidia-smi exporter, AMD's."""
