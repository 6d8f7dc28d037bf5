"""Settings of the GPUs and of NVIDIA's driver, by NVML; where they are in the machine, by /sys."""

from ctypes import byref
from typing import Any

from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.sources.node_snapshot.found import Found, known, text, unread
from goodput_ingest.sources.node_snapshot.host import root_complex
from goodput_ingest.sources.nvml import library
from goodput_ingest.sources.nvml.asking import Asked
from goodput_ingest.sources.nvml.library import Nvml, NvmlError
from goodput_ingest.sources.nvml.links import Links
from goodput_ingest.sources.nvml.readings import Call, Reading

CLOCK_GRAPHICS, CLOCK_MEMORY = 0, 2
NO_ANSWER = "NVML gave no answer"
MODES = {0: "off", 1: "on"}
COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# nvmlGpuFabricState_t
FABRIC_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}


def _reading(name: str, function: str, *arguments: Any, names: Any = None) -> Reading:
    """Return a reading; names: its texts by NVML's number. Of a pair the current one is taken."""

    def take(answer: Any) -> tuple[str]:
        value = answer[0] if isinstance(answer, list) else answer
        return (str((names or {}).get(value, library.text(value))),)

    return Reading((name,), (Call(function, arguments, take),))


READINGS = (
    _reading("gpu.model", "nvmlDeviceGetName"),
    _reading("gpu.vbios", "nvmlDeviceGetVbiosVersion"),
    _reading("gpu.gsp_firmware", "nvmlDeviceGetGspFirmwareVersion"),
    _reading("gpu.persistence", "nvmlDeviceGetPersistenceMode", names=MODES),
    _reading("gpu.ecc", "nvmlDeviceGetEccMode", names=MODES),
    _reading("gpu.mig", "nvmlDeviceGetMigMode", names=MODES),
    _reading("gpu.compute_mode", "nvmlDeviceGetComputeMode", names=COMPUTE_MODES),
    _reading("gpu.power_limit_mw", "nvmlDeviceGetPowerManagementLimit"),
    _reading("gpu.application_clock_mhz", "nvmlDeviceGetApplicationsClock", CLOCK_GRAPHICS),
    _reading("gpu.application_memory_clock_mhz", "nvmlDeviceGetApplicationsClock", CLOCK_MEMORY),
    _reading("gpu.max_clock_mhz", "nvmlDeviceGetMaxClockInfo", CLOCK_GRAPHICS),
    _reading("gpu.pcie_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _reading("gpu.pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
)


def note(found: Found, module: Any = None) -> None:
    """Note driver and GPUs; without NVML `gpu.count` is unknown. module: a `pynvml`, for tests."""
    try:
        nvml = Nvml(module)
        nvml.open()
    except NvmlError as error:
        found.unknown["gpu.count"] = error.reason
        return
    try:
        _note(found, nvml)
    except NvmlError as error:
        found.unknown["gpu.count"] = error.reason
    finally:
        nvml.close()


def _note(found: Found, nvml: Nvml) -> None:
    _one(found, "gpu.driver", lambda: library.text(nvml.ask("nvmlSystemGetDriverVersion")))
    _one(found, "gpu.cuda", lambda: _cuda(nvml.ask("nvmlSystemGetCudaDriverVersion_v2")))
    values: dict[str, dict[str, str]] = {}
    count = int(nvml.ask("nvmlDeviceGetCount"))
    for index in range(count):
        for name, value in _of_gpu(found, nvml, index).items():
            values.setdefault(name, {})[str(index)] = value
    found.settings["gpu.count"] = str(count)
    for name, by_gpu in values.items():
        found.of_each(name, by_gpu)


def _of_gpu(found: Found, nvml: Nvml, index: int) -> dict[str, str]:
    """Return the settings of a GPU; what it does not say is `unknown (reason)`."""
    try:
        handle = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        asked = Asked(nvml, handle, READINGS)
        values = asked.values()
        bus = library.text(nvml.ask("nvmlDeviceGetPciInfo", handle).busId)
        links = len(Links(nvml, handle).numbers)
    except NvmlError as error:
        return {"gpu.model": unread(error.reason)}
    names = (reading.names[0] for reading in READINGS)
    of_gpu = {n: values.get(n) or unread(asked.without.get(n, NO_ANSWER)) for n in names}
    device = found.root / "sys/bus/pci/devices" / (pci_bus_id(bus) or "")[4:]
    return of_gpu | {
        "gpu.nvlinks": str(links),
        "gpu.fabric": _fabric(nvml, handle),
        "gpu.numa": known(lambda: text(device / "numa_node").strip()),
        "gpu.pci_root": known(lambda: root_complex(device)),
    }


def _fabric(nvml: Nvml, handle: Any) -> str:
    """Return how far the GPU is in joining the fabric of its NVSwitches."""
    structure = getattr(nvml.module, "c_nvmlGpuFabricInfo_t", None)
    if structure is None:
        return unread("not in this nvidia-ml-py")
    info = structure()
    try:
        nvml.ask("nvmlDeviceGetGpuFabricInfo", handle, byref(info))
    except NvmlError as error:
        return unread(error.reason)
    state = FABRIC_STATES.get(info.state, f"state {info.state}")
    return f"{state}, NVML status {info.status}" if info.status else state


def _one(found: Found, name: str, read: Any) -> None:
    try:
        found.settings[name] = read()
    except NvmlError as error:
        found.unknown[name] = error.reason


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
