"""The Xids that a GPU reports while we watch, through an event set of its own."""

from typing import Any

from goodput_ingest.sources.nvml.library import (
    TIMEOUT,
    NeverAnswersError,
    NoAnswerError,
    Nvml,
    NvmlError,
)

XID_EVENT = 0x8  # nvmlEventTypeXidCriticalError
XIDS_MAX = 100  # of one reading: a GPU in a loop of faults must not hold up the others
WAIT_MS = 1  # events lie ready; the wait only collects them
NOT_AN_INSTANCE = 0xFFFFFFFF


class Xids:
    """An event set on one GPU; `without` says why there is none (containers, old drivers)."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        """Register for Xids; raises GpuGoneError or DriverGoneError."""
        self.without = ""
        self._nvml = nvml
        self._set: Any | None = None
        try:
            if not nvml.ask("nvmlDeviceGetSupportedEventTypes", handle) & XID_EVENT:
                self.without = "not supported"
                return
            self._set = nvml.ask("nvmlEventSetCreate")
            nvml.ask("nvmlDeviceRegisterEvents", handle, XID_EVENT, self._set)
        except (NeverAnswersError, NoAnswerError) as error:
            self._stop(error.reason)

    def since_last(self) -> list[dict[str, int]]:
        """Return the Xids since the last time, in order: `xid`, and `gi` where it names one."""
        found: list[dict[str, int]] = []
        while self._set is not None and len(found) < XIDS_MAX:
            try:
                event = self._nvml.ask("nvmlEventSetWait", self._set, WAIT_MS)
            except NoAnswerError as error:
                if error.code != TIMEOUT:
                    self._stop(error.reason)
                break
            except NeverAnswersError as error:
                self._stop(error.reason)
                break
            xid = {"xid": int(event.eventData)}
            if event.gpuInstanceId != NOT_AN_INSTANCE:
                xid["gi"] = int(event.gpuInstanceId)
            found.append(xid)
        return found

    def close(self) -> None:
        """Give the event set back."""
        if self._set is not None:
            self._stop("closed")

    def _stop(self, reason: str) -> None:
        self.without = reason
        events, self._set = self._set, None
        if events is None:
            return
        try:
            self._nvml.ask("nvmlEventSetFree", events)
        except NvmlError:
            return
