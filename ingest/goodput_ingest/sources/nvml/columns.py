"""Maps fields of recorded lines to columns: scale to base units and highest value.

Names of metrics are canonical ones; scales come from NVML's header (telemetry notes, section 2).
"""

from typing import Any

import polars as pl

from goodput_ingest.formats import raw_tables

PERCENT = 0.01
MILLI = 1e-3
NANO = 1e-9
MEGA = 1e6
KIB, MIB, SECTOR = 1024, 1024 * 1024, 512
JIFFY_S = 0.01  # USER_HZ is 100 on every Linux that runs NVIDIA's driver

RATIO_MAX = 1.0001  # above is a fault of the reading, not rounding
POWER_MAX_W = 10_000.0
CLOCK_MAX_HZ = 1e10
TEMPERATURE_MIN_C, TEMPERATURE_MAX_C = -50.0, 250.0
BYTES_MAX = 2.0**50
RATE_MAX_BYTES_PER_S = 1e13
COUNTER_MAX = 2.0**63

# raw column, field of the line, scale, highest value
FAST = (
    ("gpu_busy_ratio", "util_gpu_pct", PERCENT, RATIO_MAX),
    ("memory_busy_ratio", "util_mem_pct", PERCENT, RATIO_MAX),
    ("power_w", "power_mw", MILLI, POWER_MAX_W),
    ("energy_j", "energy_mj", MILLI, COUNTER_MAX),
    ("sm_clock_hz", "sm_mhz", MEGA, CLOCK_MAX_HZ),
    ("memory_clock_hz", "mem_mhz", MEGA, CLOCK_MAX_HZ),
    ("clocks_event_reasons", "event_reasons", 1, 2.0**62),
    ("gpu_temperature_c", "temp_c", 1, TEMPERATURE_MAX_C),
    ("memory_temperature_c", "mem_temp_c", 1, TEMPERATURE_MAX_C),
    ("memory_used_bytes", "mem_used", 1, BYTES_MAX),
)
WHOLE_COLUMNS = ("clocks_event_reasons", "memory_used_bytes")
GPM = (  # nvmlGpmMetricsGet: shares in percent, throughput in MiB/s
    ("engine_active_ratio", "gr_active_pct", PERCENT, RATIO_MAX),
    ("sm_active_ratio", "sm_active_pct", PERCENT, RATIO_MAX),
    ("sm_occupancy_ratio", "sm_occupancy_pct", PERCENT, RATIO_MAX),
    ("tensor_active_ratio", "tensor_any_pct", PERCENT, RATIO_MAX),
    ("dram_active_ratio", "dram_bw_pct", PERCENT, RATIO_MAX),
    ("fp64_active_ratio", "fp64_pct", PERCENT, RATIO_MAX),
    ("fp32_active_ratio", "fp32_pct", PERCENT, RATIO_MAX),
    ("fp16_active_ratio", "fp16_pct", PERCENT, RATIO_MAX),
    ("nvlink_tx_bytes_per_s", "nvlink_tx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("nvlink_rx_bytes_per_s", "nvlink_rx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("pcie_tx_bytes_per_s", "pcie_tx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("pcie_rx_bytes_per_s", "pcie_rx_mibs", MIB, RATE_MAX_BYTES_PER_S),
)
SHARES = tuple(name for _, name, _, _ in GPM if name.endswith("_pct"))
# canonical metric, field of the line, scale
SLOW = (
    ("throttle_power_s", "viol_power_ns", NANO),
    ("throttle_thermal_s", "viol_thermal_ns", NANO),
    ("throttle_sync_boost_s", "viol_sync_boost_ns", NANO),
    ("throttle_board_limit_s", "viol_board_limit_ns", NANO),
    ("throttle_low_utilisation_s", "viol_low_util_ns", NANO),
    ("throttle_reliability_s", "viol_reliability_ns", NANO),
    ("throttle_app_clocks_s", "viol_app_clocks_ns", NANO),
    ("throttle_base_clocks_s", "viol_base_clocks_ns", NANO),
    ("throttle_sw_thermal_s", "evt_sw_thermal_ns", NANO),
    ("throttle_hw_thermal_s", "evt_hw_thermal_ns", NANO),
    ("throttle_power_brake_s", "evt_hw_brake_ns", NANO),
    ("ecc_corrected_volatile_total", "ecc_corrected", 1),
    ("ecc_uncorrected_volatile_total", "ecc_uncorrected", 1),
    ("ecc_uncorrected_lifetime_total", "ecc_uncorrected_lifetime", 1),
    ("recovery_action", "recovery_action", 1),
    ("pcie_replay_total", "pcie_replays", 1),
    ("pcie_generation", "pcie_gen", 1),
    ("pcie_width", "pcie_width", 1),
    ("power_limit_w", "power_limit_mw", MILLI),
    ("power_limit_enforced_w", "power_limit_current_mw", MILLI),
    ("performance_state", "pstate", 1),
    ("nvlink_raw_tx_bytes_total", "nvlink_raw_tx_kib", KIB),
    ("nvlink_raw_rx_bytes_total", "nvlink_raw_rx_kib", KIB),
)
REMAPPED = (  # nvmlDeviceGetRemappedRows gives them in this order
    "rows_remapped_correctable_total",
    "rows_remapped_uncorrectable_total",
    "row_remap_pending",
    "row_remap_failed",
)
LINKS = (  # per link in the recording; kept as sums over the links of the GPU
    ("nvlink_tx_bytes_total", "tx_kib", KIB),
    ("nvlink_rx_bytes_total", "rx_kib", KIB),
    ("nvlink_tx_bytes_total", "tx_bytes", 1),  # NVLink 5 counts bytes
    ("nvlink_rx_bytes_total", "rx_bytes", 1),
    ("nvlink_replay_total", "replay", 1),
    ("nvlink_recovery_total", "recovery", 1),
    ("nvlink_crc_error_total", "crc", 1),
)
HOST = (  # columns of raw.node_samples in order: field of the line, scale
    ("memtotal_kb", KIB),
    ("memavailable_kb", KIB),
    ("cached_kb", KIB),
    ("dirty_kb", KIB),
    ("disk_read_sectors", SECTOR),
    ("disk_write_sectors", SECTOR),
    ("disk_reads", 1),
    ("disk_busy_ms", 0.001),
)
IDLE_JIFFIES = ("idle", "iowait")
GUEST_JIFFIES = ("guest", "guest_nice")  # counted inside user and nice already

DECIMALS = 12  # of scaled values, which DuckDB packs as decimals; NVML counts nanoseconds
SERIES = ("gpu_uuid", "gpu_instance")  # rows of one series differ less: they take less space
INSTANT = pl.Datetime("us")
SCHEMAS: dict[str, dict[str, Any]] = {
    "gpus": raw_tables.columns("gpus", "valid_to_at"),
    "gpu_instances": raw_tables.columns("gpu_instances", "slices_of", "slurm_index"),
    "gpu_samples": {
        "source": pl.String,
        "gpu_uuid": pl.String,
        "gpu_instance": pl.String,
        "ts": INSTANT,
        **{name: pl.Float64 for name, _, _, _ in FAST},
        **{name: pl.Float64 for name, _, _, _ in GPM},
        **dict.fromkeys(WHOLE_COLUMNS, pl.Int64),
        "is_flagged": pl.Boolean,
        "flagged_metrics": pl.String,
    },
    "gpu_samples_other": raw_tables.columns("gpu_samples_other"),
    "gpu_processes": raw_tables.columns("gpu_processes"),
    "processes": raw_tables.columns("processes"),
    "gpu_owners": raw_tables.columns("gpu_owners"),
    "gpu_events": raw_tables.columns("gpu_events", "pid", "process_name"),
    "node_samples": {
        "source": pl.String,
        "node": pl.String,
        "ts": INSTANT,
        "cpu_busy_s": pl.Float64,
        "cpu_iowait_s": pl.Float64,
        "cpu_total_s": pl.Float64,
        "load1": pl.Float64,
        "memory_total_bytes": pl.Int64,
        "memory_available_bytes": pl.Int64,
        "page_cache_bytes": pl.Int64,
        "dirty_bytes": pl.Int64,
        "disk_read_bytes": pl.Int64,
        "disk_write_bytes": pl.Int64,
        "disk_reads": pl.Int64,
        "disk_busy_s": pl.Float64,
    },
}
