"""GPM on Hopper and later: what the units of a GPU did between two snapshots of its counters.

The shares are exact for the time between two readings of ours, however long. Snapshots less than
100 ms apart give zeros without a DRAM share, so they are not compared.
"""

import math
from typing import Any

from goodput_ingest.sources.nvml.library import NeverAnswersError, NoAnswerError, Nvml, NvmlError
from goodput_ingest.sources.nvml.readings import GPM

WINDOW_MIN_S = 0.1
NOT_SUPPORTED = 3
DIGITS = 3


class Gpm:
    """Snapshots of one GPU, or of one MIG instance of it."""

    def __init__(self, nvml: Nvml, handle: Any, gpu_instance: int | None = None) -> None:
        """Allocate two snapshots; raises NeverAnswersError where the GPU has no GPM."""
        self.without: list[str] = []  # metrics that this GPU never gives
        self._nvml = nvml
        self._handle = handle
        self._instance = gpu_instance
        self._taken_s: float | None = None
        if not nvml.ask("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice:
            raise NeverAnswersError("not supported")
        self._before = nvml.ask("nvmlGpmSampleAlloc")
        self._now = nvml.ask("nvmlGpmSampleAlloc")
        self._asked = nvml.module.c_nvmlGpmMetricsGet_t()
        self._asked.version = nvml.constant("NVML_GPM_METRICS_GET_VERSION", 1)
        self._asked.numMetrics = len(GPM)
        for metric, number in zip(self._asked.metrics, GPM.values(), strict=False):
            metric.metricId = number

    def read(self, steady_s: float) -> dict[str, Any]:
        """Return the fields `gpm`, `gpm_window_ms` and `gpm_without` of a line.

        None at the first snapshot; an empty `gpm` where NVML could not compare two. Raises
        NeverAnswersError, GpuGoneError or DriverGoneError.
        """
        if self._taken_s is not None and steady_s - self._taken_s < WINDOW_MIN_S:
            return {}
        try:
            if self._instance is None:
                self._nvml.ask("nvmlGpmSampleGet", self._handle, self._now)
            else:
                self._nvml.ask("nvmlGpmMigSampleGet", self._handle, self._instance, self._now)
        except NoAnswerError:
            self._taken_s = None  # the next window would be longer than it says
            return {"gpm": {}}
        before_s, self._taken_s = self._taken_s, steady_s
        shares = None if before_s is None else self._compare()
        self._before, self._now = self._now, self._before
        if before_s is None:
            return {}
        line = {"gpm": shares, "gpm_window_ms": round((steady_s - before_s) * 1e3, 1)}
        return line | {"gpm_without": self.without} if self.without else line

    def close(self) -> None:
        """Free the snapshots; they are plain memory, whatever became of the GPU."""
        for sample in (self._before, self._now):
            try:
                self._nvml.ask("nvmlGpmSampleFree", sample)
            except NvmlError:
                return

    def _compare(self) -> dict[str, float | None]:
        """Return each metric between the two snapshots; None where NVML gave no number."""
        self._asked.sample1, self._asked.sample2 = self._before, self._now
        try:
            self._nvml.ask("nvmlGpmMetricsGet", self._asked)
        except NoAnswerError:
            return {}
        found: dict[str, float | None] = {}
        for name, metric in zip(GPM, self._asked.metrics, strict=False):
            if metric.nvmlReturn == NOT_SUPPORTED:
                if name not in self.without:
                    self.without.append(name)
            elif metric.nvmlReturn or not math.isfinite(metric.value):
                found[name] = None
            else:
                found[name] = round(metric.value, DIGITS)
        return found


def open_gpm(nvml: Nvml, handle: Any, gpu_instance: int | None = None) -> tuple[Gpm | None, str]:
    """Return the GPM of a GPU or of an instance of it, or why there is none."""
    try:
        return Gpm(nvml, handle, gpu_instance), ""
    except (NeverAnswersError, NoAnswerError) as error:
        return None, error.reason
