# ruff: noqa: D101, D102, N802 -- the names are NVML's own
"""A module object with pynvml's functions: any number of made-up GPUs whose answers tests change.

It stands in for the driver, not for code of ours: names, arguments, structures, return codes and
exceptions are those of nvidia-ml-py (11 to 13 differ in which names there are; see `without`).
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, TIMEOUT, FUNCTION_NOT_FOUND = 3, 4, 6, 10, 13
UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED = 1, 9, 12, 15, 16
VERSION_MISMATCH, UNKNOWN = 18, 999
UNSIGNED_INT, UNSIGNED_LONG_LONG = 1, 3
XID = 8


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return {GPU_IS_LOST: "GPU is lost", UNKNOWN: "Unknown Error"}.get(
            self.value, f"NVML Error with code {self.value}"
        )


class NVMLLibraryMismatchError(Exception):
    pass


@dataclass
class FakeInstance:
    gi: int
    name: str = "NVIDIA H200 MIG 3g.71gb"
    slices: int = 3
    memory_mib: int = 71_680
    used: int = 1_000


@dataclass
class FakeGpu:
    """What one GPU answers; `answers` and `fields` may be numbers or error codes in `errors`."""

    uuid: str = "GPU-a"
    name: str | bytes = "NVIDIA H200"
    pci: str = "00000000:9B:00.0"
    minor: int = 4
    answers: dict[str, Any] = field(default_factory=dict)
    errors: dict[Any, int] = field(default_factory=dict)  # function or field number -> code
    fields: dict[int, int] = field(default_factory=dict)
    links: int = 2
    gpm: bool = True
    gpm_codes: dict[int, int] = field(default_factory=dict)  # metric -> code
    gpm_values: dict[int, float] = field(default_factory=dict)
    xids: list[tuple[int, int]] = field(default_factory=list)  # code, GPU instance
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    mig: int = 0
    instances: list[FakeInstance] = field(default_factory=list)
    error: int = 0  # every call fails with it

    def __post_init__(self):
        self.asked = []  # functions and fields, in order


DEFAULT_FIELDS = {
    185: 690_500, 83: 2_000, 82: 60, 74: 5_000_000_000, 269: 0, 94: 1, 140: 10, 141: 20, 230: 0,
}  # fmt: skip
PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
CLOCKS_MHZ = {1: 1980, 2: 3201}


def processes(gpu):
    return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in gpu.processes]


ANSWERS = {  # a value, or a function of the GPU and further arguments
    "nvmlDeviceGetUUID": lambda gpu: gpu.uuid,
    "nvmlDeviceGetMinorNumber": lambda gpu: gpu.minor,
    "nvmlDeviceGetPciInfo": lambda gpu: SimpleNamespace(busId=gpu.pci),
    "nvmlDeviceGetMigMode": lambda gpu: [gpu.mig] * 2,
    "nvmlDeviceGetClockInfo": lambda _, clock: CLOCKS_MHZ[clock],
    "nvmlGpmQueryDeviceSupport": lambda gpu: SimpleNamespace(isSupportedDevice=int(gpu.gpm)),
    **dict.fromkeys((PROCESSES, f"{PROCESSES}_v3"), processes),
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=30),
    "nvmlDeviceGetPowerUsage": 690_400, "nvmlDeviceGetTotalEnergyConsumption": 2_000,
    "nvmlDeviceGetCurrentClocksEventReasons": 4, "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
    "nvmlDeviceGetSupportedClocksEventReasons": 511,
    "nvmlDeviceGetSupportedClocksThrottleReasons": 511, "nvmlDeviceGetTemperatureV": 55,
    "nvmlDeviceGetTemperature": 55, "nvmlDeviceGetPcieReplayCounter": 1,
    "nvmlDeviceGetPowerManagementLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000, "nvmlDeviceGetEnforcedPowerLimit": 650_000,
    "nvmlDeviceGetPerformanceState": 0, "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16, "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16, "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetTemperatureThreshold": 89, "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetVbiosVersion": b"96.00.CF.00.01", "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": (1, 2, 0, 1), "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetSupportedEventTypes": XID,
}  # fmt: skip


class FakeNvml:
    """The module. `without` takes functions away, as an older pynvml or driver does."""

    NVMLError = NVMLError
    NVMLLibraryMismatchError = NVMLLibraryMismatchError
    NVML_GPM_METRICS_GET_VERSION = 1

    def __init__(self, *gpus, init_error=0):
        self.gpus = list(gpus)
        self.init_error = init_error
        self.opened = self.closed = 0
        self.samples_held = 0
        for function, answer in ANSWERS.items():
            setattr(self, function, self._simple(function, answer))

    def without(self, *functions):
        for function in functions:
            setattr(self, function, None)
        return self

    def _simple(self, function, answer):
        def call(handle, *arguments):
            gpu = self._gpu(handle, function)
            own = answer(gpu, *arguments) if callable(answer) else answer
            return gpu.answers.get(function, own)

        return call

    def _gpu(self, handle, function):
        gpu = handle[0] if isinstance(handle, tuple) else handle
        gpu.asked.append(function)
        if code := gpu.error or gpu.errors.get(function, 0):
            raise NVMLError(code)
        return gpu

    def nvmlInit(self):
        if self.init_error:
            raise NVMLError(self.init_error)
        self.opened += 1

    def nvmlShutdown(self):
        self.closed += 1

    def nvmlSystemGetDriverVersion(self):
        return "580.159.04"

    def nvmlSystemGetNVMLVersion(self):
        return "13.580.159.04"

    def nvmlDeviceGetCount(self):
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self._gpu(self.gpus[index], "nvmlDeviceGetHandleByIndex")

    def nvmlDeviceGetName(self, handle):
        if isinstance(handle, tuple):
            return str(handle[1].name)
        return self._gpu(handle, "nvmlDeviceGetName").name

    def nvmlDeviceGetMemoryInfo(self, handle, version=0):
        gpu = self._gpu(handle, "nvmlDeviceGetMemoryInfo")
        if isinstance(handle, tuple):
            return SimpleNamespace(used=handle[1].used, total=0)
        used = 500 if version else 600  # the older call counts what the driver reserves
        return SimpleNamespace(used=gpu.answers.get("mem_used", used), total=1_000)

    def nvmlDeviceGetFieldValues(self, handle, fields):
        gpu = self._gpu(handle, "nvmlDeviceGetFieldValues")
        return [self._field(gpu, number, scope) for number, scope in fields]

    def _field(self, gpu, number, scope):
        gpu.asked.append(number)
        value = {**DEFAULT_FIELDS, **gpu.fields}.get(number)
        if value is None and number in (138, 139) and scope < gpu.links:
            value = 100 + scope
        code = gpu.errors.get(number, NOT_SUPPORTED if value is None else 0)
        union = SimpleNamespace(uiVal=value, ullVal=value)
        kind = UNSIGNED_INT if number == 82 else UNSIGNED_LONG_LONG
        return SimpleNamespace(nvmlReturn=code, valueType=kind, value=union)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, place):
        gpu = self._gpu(handle, "nvmlDeviceGetMigDeviceHandleByIndex")
        if place >= len(gpu.instances):
            raise NVMLError(NOT_FOUND)
        return gpu, gpu.instances[place]

    def nvmlDeviceGetGpuInstanceId(self, handle):
        return int(handle[1].gi)

    def nvmlDeviceGetAttributes(self, handle):
        _, of = handle
        return SimpleNamespace(gpuInstanceSliceCount=of.slices, memorySizeMB=of.memory_mib)

    def nvmlEventSetCreate(self):
        return []

    def nvmlDeviceRegisterEvents(self, handle, kinds, events):
        assert kinds == XID
        events.append(self._gpu(handle, "nvmlDeviceRegisterEvents"))

    def nvmlEventSetWait(self, events, _timeout_ms):
        gpu = self._gpu(events[0], "nvmlEventSetWait")
        if not gpu.xids:
            raise NVMLError(TIMEOUT)
        code, instance = gpu.xids.pop(0)
        return SimpleNamespace(eventData=code, gpuInstanceId=instance)

    def nvmlEventSetFree(self, events):
        events.clear()

    def c_nvmlGpmMetricsGet_t(self):
        metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(98)]
        return SimpleNamespace(version=0, numMetrics=0, sample1=None, sample2=None, metrics=metrics)

    def nvmlGpmSampleAlloc(self):
        self.samples_held += 1
        return SimpleNamespace(number=self.samples_held, gpu=None, gi=None)

    def nvmlGpmSampleFree(self, sample):
        sample.gpu = None
        self.samples_held -= 1

    def nvmlGpmSampleGet(self, handle, sample):
        sample.gpu, sample.gi = self._gpu(handle, "nvmlGpmSampleGet"), None

    def nvmlGpmMigSampleGet(self, handle, gi, sample):
        sample.gpu, sample.gi = self._gpu(handle, "nvmlGpmMigSampleGet"), gi

    def nvmlGpmMetricsGet(self, asked):
        gpu = asked.sample1.gpu
        assert gpu is asked.sample2.gpu, "two snapshots of one GPU"
        assert asked.sample1 is not asked.sample2
        self._gpu(gpu, "nvmlGpmMetricsGet")
        for metric in asked.metrics[: asked.numMetrics]:
            metric.nvmlReturn = gpu.gpm_codes.get(metric.metricId, 0)
            metric.value = gpu.gpm_values.get(metric.metricId, 10.0 + (asked.sample1.gi or 0))
