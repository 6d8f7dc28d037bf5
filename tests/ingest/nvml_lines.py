"""Lines of an NVML recording, for tests."""

GPU = {"index": 0, "uuid": "GPU-a", "name": "NVIDIA H200", "pci_bus_id": "00000000:9B:00.0"}
META = {"kind": "meta", "t": 1795177770.5, "host": "vm", "driver": "580.159.04", "gpus": [GPU]}
FAST = {"kind": "fast", "t": 1795177771.0, "gpu": 0, "util_gpu_pct": 97, "power_mw": 690_500}
