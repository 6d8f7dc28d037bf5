"""One GPU as lines of a recording: what it is, its fast and slow readings, its Xids."""

from typing import Any

from goodput_ingest.sources.nvml.asking import Asked
from goodput_ingest.sources.nvml.gpm import Gpm, open_gpm
from goodput_ingest.sources.nvml.instances import Instance, instances, is_cut
from goodput_ingest.sources.nvml.library import NeverAnswersError, Nvml, text
from goodput_ingest.sources.nvml.links import Links
from goodput_ingest.sources.nvml.readings import FAST, MEMORY, META, PROCESSES, SLOW
from goodput_ingest.sources.nvml.xids import Xids

Line = dict[str, Any]


class Gpu:
    """A GPU by its NVML index. An unsupported reading is queried once and then skipped.

    All methods but `close` may raise GpuGoneError or DriverGoneError.
    """

    def __init__(self, nvml: Nvml, index: int, *, sees_all_processes: bool = True) -> None:
        """Open the GPU, see how it is cut, and listen for Xids; raises NvmlError.

        sees_all_processes: False where the driver shows only those of our own PID namespace, so
        that an empty list proves nothing.
        """
        self.index = index
        self._nvml = nvml
        self._sees_all_processes = sees_all_processes
        self._handle = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        self.uuid = text(nvml.ask("nvmlDeviceGetUUID", self._handle))
        self._about = {
            "index": index,
            "uuid": self.uuid,
            "name": text(nvml.ask("nvmlDeviceGetName", self._handle)),
            "pci_bus_id": text(nvml.ask("nvmlDeviceGetPciInfo", self._handle).busId),
            **Asked(nvml, self._handle, META).values(),
        }
        self._fast = Asked(nvml, self._handle, FAST)
        self._slow = Asked(nvml, self._handle, SLOW)
        self._links = Links(nvml, self._handle)
        self._is_cut = is_cut(nvml, self._handle)
        self._parts = [_Part(nvml, self._handle, i) for i in instances(nvml, self._handle)]
        self._gpm: Gpm | None = None
        self._without_gpm = ""
        if not self._parts:
            self._gpm, self._without_gpm = open_gpm(nvml, self._handle)
        self._xids = Xids(nvml, self._handle)

    def meta(self) -> Line:
        """Return what the meta line says of this GPU."""
        return {
            **self._about,
            "nvlink_links": self._links.numbers,
            "gpm": any(gpm is not None for gpm in self._gpms()),
            "instances": [part.instance.meta() for part in self._parts],
        }

    def without(self) -> dict[str, str]:
        """Return by name why a reading is not there; complete after the first readings."""
        others = {"gpm": self._without_gpm, "xids": self._xids.without}
        if not self._sees_all_processes:
            others[PROCESSES] = "not in the machine's own PID namespace"
        return {
            **self._fast.without,
            **self._slow.without,
            **{name: reason for name, reason in others.items() if reason},
        }

    def fast(self, wall_s: float, steady_s: float) -> list[Line]:
        """Return the reading of the GPU, or of each of its instances.

        Power, clocks and temperature are the whole GPU's and repeated for each instance.
        """
        line = {"kind": "fast", "t": wall_s, "gpu": self.index, **self._fast.values()}
        if self._parts:
            return [part.fast(line, steady_s) for part in self._parts]
        if self._gpm is not None:
            try:
                line |= self._gpm.read(steady_s)
            except NeverAnswersError as error:
                self._gpm, self._without_gpm = None, error.reason
        return [line]

    def slow(self, wall_s: float) -> Line:
        """Return the counters and processes of the GPU."""
        values = self._slow.values()
        if not self._sees_all_processes and not values.get(PROCESSES):
            values.pop(PROCESSES, None)
        line = {"kind": "slow", "t": wall_s, "gpu": self.index, **values}
        return line | {"links": links} if (links := self._links.counters()) else line

    def events(self, wall_s: float) -> list[Line]:
        """Return the Xids since the last time; when exactly they came is not known."""
        line = {"kind": "event", "t": wall_s, "gpu": self.index, "event": "xid"}
        return [line | xid for xid in self._xids.since_last()]

    def has_new_layout(self) -> bool:
        """Say whether MIG was switched or instances came or went since this was opened."""
        if is_cut(self._nvml, self._handle) != self._is_cut:
            return True
        now = [instance.meta() for instance in instances(self._nvml, self._handle)]
        return now != [part.instance.meta() for part in self._parts]

    def close(self) -> None:
        """Release the resources of NVML."""
        for gpm in self._gpms():
            if gpm is not None:
                gpm.close()
        self._xids.close()

    def _gpms(self) -> list[Gpm | None]:
        return [self._gpm, *(part.gpm for part in self._parts)]


class _Part:
    """A MIG instance: the memory and the GPM of its own, the rest repeated from its GPU."""

    def __init__(self, nvml: Nvml, gpu_handle: Any, instance: Instance) -> None:
        self.instance = instance
        self.gpm, _ = open_gpm(nvml, gpu_handle, instance.gi)
        self._memory = Asked(nvml, instance.handle, [MEMORY])

    def fast(self, of_gpu: Line, steady_s: float) -> Line:
        """Return the reading of this instance."""
        shared = {name: value for name, value in of_gpu.items() if name != "mem_used"}
        line = {**shared, "gi": self.instance.gi, **self._memory.values()}
        if self.gpm is not None:
            try:
                line |= self.gpm.read(steady_s)
            except NeverAnswersError:
                self.gpm = None
        return line
