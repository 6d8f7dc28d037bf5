"""The counters of a GPU's NVLinks, a value a link."""

from typing import Any

from goodput_ingest.sources.nvml import readings
from goodput_ingest.sources.nvml.asking import Field, field_values
from goodput_ingest.sources.nvml.library import NeverAnswersError, NoAnswerError, Nvml

LINKS_MAX = 18


class Links:
    """The links of a GPU with their counters; skips links that do not answer at first."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        """Ask every counter of every link once; raises GpuGoneError or DriverGoneError."""
        self._nvml = nvml
        self._handle = handle
        self._fields: list[Field] = [
            (number, link) for number in readings.LINKS.values() for link in range(LINKS_MAX)
        ]
        self._fields = list(self._values())

    @property
    def numbers(self) -> list[int]:
        """The links that count anything."""
        return sorted({link for _, link in self._fields})

    def counters(self) -> dict[str, list[float | int | None]]:
        """Return each counter with a value a link; None where a link did not answer now."""
        if not self._fields:
            return {}
        values = self._values()
        found: dict[str, list[float | int | None]] = {}
        for name, number in readings.LINKS.items():
            if per_link := [values.get(field) for field in self._fields if field[0] == number]:
                found[name] = per_link
        return found

    def _values(self) -> dict[Field, float | int]:
        try:
            values, _ = field_values(self._nvml, self._handle, self._fields)
        except (NeverAnswersError, NoAnswerError):
            return {}
        return values
