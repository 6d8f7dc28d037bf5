"""Readings of a GPU: their names in a line and the NVML calls for them.

A field of nvmlDeviceGetFieldValues comes first where there is one: all fields cost one call. A call
of its own follows; of several the first that this GPU answers is kept. Field numbers are NVML's
own (NVML_FI_DEV_*), which do not change; older versions of pynvml lack some of the names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from goodput_ingest.sources.nvml.library import text

CLOCK_SM, CLOCK_MEMORY = 1, 2
TEMPERATURE_GPU = 0
CORRECTED, UNCORRECTED = 0, 1
VOLATILE, LIFETIME = 0, 1
MEMORY_V2 = 0x02000028  # nvmlMemory_v2: `used` without what the driver reserves
ALL_LINKS = 0xFFFFFFFF


@dataclass(frozen=True)
class Call:
    """A function asked with the GPU's handle and arguments; `take` picks the named values."""

    function: str
    arguments: tuple[Any, ...] = ()
    take: Callable[[Any], tuple[Any, ...]] = lambda answer: (answer,)


@dataclass(frozen=True)
class Reading:
    """Values that come with one call: their names in a line, and the ways to ask.

    field: number and scope of nvmlDeviceGetFieldValues, for a single value.
    """

    names: tuple[str, ...]
    calls: tuple[Call, ...] = ()
    field: tuple[int, int] | None = None


def _of_field(name: str, number: int, *calls: Call, scope: int = 0) -> Reading:
    return Reading((name,), calls, (number, scope))


def _of_call(name: str, *calls: Call) -> Reading:
    return Reading((name,), calls)


def _processes(answer: Any) -> tuple[list[list[int | None]]]:
    return ([[process.pid, process.usedGpuMemory] for process in answer],)


PROCESSES = "procs"
MEMORY = _of_call(
    "mem_used",
    Call("nvmlDeviceGetMemoryInfo", (MEMORY_V2,), lambda memory: (memory.used,)),
    Call("nvmlDeviceGetMemoryInfo", (), lambda memory: (memory.used,)),  # with what is reserved
)

FAST = (  # every reading
    Reading(
        ("util_gpu_pct", "util_mem_pct"),
        (Call("nvmlDeviceGetUtilizationRates", (), lambda rates: (rates.gpu, rates.memory)),),
    ),
    MEMORY,
    _of_field("power_mw", 185, Call("nvmlDeviceGetPowerUsage")),
    _of_field("energy_mj", 83, Call("nvmlDeviceGetTotalEnergyConsumption")),
    _of_field("mem_temp_c", 82),
    _of_call("sm_mhz", Call("nvmlDeviceGetClockInfo", (CLOCK_SM,))),
    _of_call("mem_mhz", Call("nvmlDeviceGetClockInfo", (CLOCK_MEMORY,))),
    _of_call(
        "event_reasons",
        Call("nvmlDeviceGetCurrentClocksEventReasons"),
        Call("nvmlDeviceGetCurrentClocksThrottleReasons"),
    ),
    _of_call(
        "temp_c",
        Call("nvmlDeviceGetTemperatureV", (TEMPERATURE_GPU,)),
        Call("nvmlDeviceGetTemperature", (TEMPERATURE_GPU,)),
    ),
)
SLOW = (  # what changes seldom, and counters
    _of_field("viol_power_ns", 74),
    _of_field("viol_thermal_ns", 75),
    _of_field("viol_sync_boost_ns", 76),
    _of_field("viol_board_limit_ns", 77),
    _of_field("viol_low_util_ns", 78),
    _of_field("viol_reliability_ns", 79),
    _of_field("viol_app_clocks_ns", 80),
    _of_field("viol_base_clocks_ns", 81),
    _of_field("evt_sw_thermal_ns", 269),
    _of_field("evt_hw_thermal_ns", 270),
    _of_field("evt_hw_brake_ns", 271),
    _of_field("pcie_replays", 94, Call("nvmlDeviceGetPcieReplayCounter")),
    _of_field("nvlink_raw_tx_kib", 140, scope=ALL_LINKS),
    _of_field("nvlink_raw_rx_kib", 141, scope=ALL_LINKS),
    _of_field("recovery_action", 230),
    _of_call("power_limit_mw", Call("nvmlDeviceGetPowerManagementLimit")),
    _of_call("power_limit_current_mw", Call("nvmlDeviceGetEnforcedPowerLimit")),
    _of_call("pstate", Call("nvmlDeviceGetPerformanceState")),
    _of_call("pcie_gen", Call("nvmlDeviceGetCurrPcieLinkGeneration")),
    _of_call("pcie_width", Call("nvmlDeviceGetCurrPcieLinkWidth")),
    _of_call("ecc_corrected", Call("nvmlDeviceGetTotalEccErrors", (CORRECTED, VOLATILE))),
    _of_call("ecc_uncorrected", Call("nvmlDeviceGetTotalEccErrors", (UNCORRECTED, VOLATILE))),
    _of_call(
        "ecc_uncorrected_lifetime", Call("nvmlDeviceGetTotalEccErrors", (UNCORRECTED, LIFETIME))
    ),
    _of_call("remapped_rows", Call("nvmlDeviceGetRemappedRows", (), lambda rows: (list(rows),))),
    _of_call(
        PROCESSES,
        Call("nvmlDeviceGetComputeRunningProcesses_v3", (), _processes),
        Call("nvmlDeviceGetComputeRunningProcesses_v2", (), _processes),
        Call("nvmlDeviceGetComputeRunningProcesses", (), _processes),
    ),
)
META = (  # once, for the meta line
    _of_call("minor", Call("nvmlDeviceGetMinorNumber")),
    _of_call("mem_total", Call("nvmlDeviceGetMemoryInfo", (), lambda memory: (memory.total,))),
    _of_call("power_limit_mw", Call("nvmlDeviceGetPowerManagementLimit")),
    _of_call("power_limit_default_mw", Call("nvmlDeviceGetPowerManagementDefaultLimit")),
    _of_call("sm_clock_max_mhz", Call("nvmlDeviceGetMaxClockInfo", (CLOCK_SM,))),
    _of_call("mem_clock_max_mhz", Call("nvmlDeviceGetMaxClockInfo", (CLOCK_MEMORY,))),
    _of_call("pcie_gen_max", Call("nvmlDeviceGetMaxPcieLinkGeneration")),
    _of_call("pcie_width_max", Call("nvmlDeviceGetMaxPcieLinkWidth")),
    _of_call("temp_shutdown_c", Call("nvmlDeviceGetTemperatureThreshold", (0,))),
    _of_call("temp_slowdown_c", Call("nvmlDeviceGetTemperatureThreshold", (1,))),
    _of_call("vbios", Call("nvmlDeviceGetVbiosVersion", (), lambda version: (text(version),))),
    _of_call("persistence", Call("nvmlDeviceGetPersistenceMode")),
    _of_call("mig", Call("nvmlDeviceGetMigMode", (), lambda modes: (modes[0],))),
    _of_call(
        "event_reasons_supported",
        Call("nvmlDeviceGetSupportedClocksEventReasons"),
        Call("nvmlDeviceGetSupportedClocksThrottleReasons"),
    ),
)
GPM = {  # nvmlGpmMetricsGet: number of each metric
    "gr_active_pct": 1,
    "sm_active_pct": 2,
    "sm_occupancy_pct": 3,
    "int_pct": 4,
    "tensor_any_pct": 5,
    "tensor_dfma_pct": 6,
    "tensor_hmma_pct": 7,
    "tensor_imma_pct": 9,
    "dram_bw_pct": 10,
    "fp64_pct": 11,
    "fp32_pct": 12,
    "fp16_pct": 13,
    "pcie_tx_mibs": 20,
    "pcie_rx_mibs": 21,
    "nvlink_rx_mibs": 60,
    "nvlink_tx_mibs": 61,
}
