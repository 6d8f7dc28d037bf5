"""Lines of an NVML recording, for tests."""

META = {
    "kind": "meta",
    "t": 1795177770.5,
    "host": "vm",
    "driver": "580.159.04",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-a",
            "name": "NVIDIA H200",
            "pci_bus_id": "00000000:9B:00.0",
            "minor": 4,
            "mem_total": 1000,
            "power_limit_mw": 700000,
            "sm_clock_max_mhz": 1980,
            "temp_slowdown_c": 89,
            "vbios": "96.00.CF.00.01",
        }
    ],
}
GPM = {
    "gr_active_pct": 98.0,
    "sm_active_pct": 90.0,
    "sm_occupancy_pct": 40.0,
    "tensor_any_pct": 50.0,
    "dram_bw_pct": 30.0,
    "fp64_pct": 0.0,
    "fp32_pct": 4.0,
    "fp16_pct": 1.0,
    "nvlink_tx_mibs": 2.0,
    "nvlink_rx_mibs": 1.0,
    "pcie_tx_mibs": 1.0,
    "pcie_rx_mibs": 3.0,
}
FAST = {
    "kind": "fast",
    "t": 1795177771.0,
    "gpu": 0,
    "util_gpu_pct": 97,
    "power_mw": 690500,
    "energy_mj": 2000,
    "sm_mhz": 1980,
    "mem_mhz": 3201,
    "event_reasons": 4,
    "temp_c": 55,
    "mem_temp_c": 60,
    "mem_used": 500,
    "gpm": GPM,
}
