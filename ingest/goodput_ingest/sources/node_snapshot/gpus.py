"""Settings of the GPUs and of NVIDIA's driver, by NVML; where they are in the machine, by /sys."""

from functools import partial
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
    """Note driver and GPUs; without NVML `gpu` is unknown. module: a `pynvml`, for tests."""
    try:
        nvml = Nvml(module)
        nvml.open()
        _note(found, nvml)
        nvml.close()
    except NvmlError as error:
        found.unknown["gpu"] = error.reason


def _note(found: Found, nvml: Nvml) -> None:
    found.note("gpu.driver", partial(_ask, nvml, "nvmlSystemGetDriverVersion"))
    cuda = partial(_ask, nvml, "nvmlSystemGetCudaDriverVersion_v2")  # 12080 is 12.8
    found.note("gpu.cuda", lambda: "{}.{}".format(*divmod(int(cuda()) // 10, 100)))
    values: dict[str, dict[str, str]] = {}
    count = int(nvml.ask("nvmlDeviceGetCount"))
    for index in range(count):
        for name, value in _of_gpu(found, nvml, index).items():
            values.setdefault(name, {})[str(index)] = value
    found.settings["gpu.count"] = str(count)
    for name, by_gpu in values.items():
        found.of_each(name, by_gpu)


def _ask(nvml: Nvml, function: str) -> str:
    """Return what NVML says of the system; ValueError says why it does not."""
    try:
        return library.text(nvml.ask(function))
    except NvmlError as error:
        raise ValueError(error.reason) from error


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
        "gpu.numa": known(lambda: text(device / "numa_node").strip()),
        "gpu.pci_root": known(lambda: root_complex(device)),
    }
