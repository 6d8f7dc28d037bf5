"""Queries many readings of one GPU at once, each by the NVML call that works for it."""

from collections.abc import Sequence
from typing import Any

from goodput_ingest.sources.nvml.library import (
    GPU_IS_LOST,
    NEVER,
    RESET_REQUIRED,
    GpuGoneError,
    NeverAnswersError,
    NoAnswerError,
    Nvml,
)
from goodput_ingest.sources.nvml.readings import Reading

# nvmlValueType_t -> member of the union nvmlValue_t
MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
Field = tuple[int, int]  # number, scope


class Asked:
    """The readings of one GPU at one interval, with the call that works for each.

    without: why a value is not there, by name; it is not asked for again.
    """

    def __init__(self, nvml: Nvml, handle: Any, readings: Sequence[Reading]) -> None:
        """Start with the first call of each reading."""
        self.without: dict[str, str] = {}
        self._nvml = nvml
        self._handle = handle
        self._by_field = [(r, r.field) for r in readings if r.field is not None]
        self._by_call = [(r, 0) for r in readings if r.field is None]  # the way that answers

    def values(self) -> dict[str, Any]:
        """Return the current values of the GPU by name.

        Raises GpuGoneError or DriverGoneError; whatever else goes wrong leaves a name out.
        """
        found = self._fields()
        working: list[tuple[Reading, int]] = []
        for reading, way in self._by_call:
            values, way_now = self._call(reading, way)
            if way_now < len(reading.calls):
                working.append((reading, way_now))
            if values is not None:
                found.update(zip(reading.names, values, strict=True))
        self._by_call = working
        return found

    def _fields(self) -> dict[str, Any]:
        """Ask for all fields at once; an unsupported one is asked by its call from now on."""
        if not self._by_field:
            return {}
        fields = [field for _, field in self._by_field]
        try:
            values, never = field_values(self._nvml, self._handle, fields)
        except NoAnswerError:
            return {}
        except NeverAnswersError as error:
            values, never = {}, dict.fromkeys(fields, error.reason)
        for reading, field in self._by_field:
            if field in never and reading.calls:
                self._by_call.append((reading, 0))
            elif field in never:
                self.without[reading.names[0]] = never[field]
        self._by_field = [(r, field) for r, field in self._by_field if field not in never]
        return {r.names[0]: values[field] for r, field in self._by_field if field in values}

    def _call(self, reading: Reading, way: int) -> tuple[tuple[Any, ...] | None, int]:
        """Return the values and the way that gave them; past the last way nothing does."""
        for number, call in enumerate(reading.calls[way:], way):
            try:
                answer = self._nvml.ask(call.function, self._handle, *call.arguments)
            except NoAnswerError:
                return None, number
            except NeverAnswersError as error:
                why = error.reason
            else:
                return call.take(answer), number
        self.without.update(dict.fromkeys(reading.names, why))
        return None, len(reading.calls)


def field_values(
    nvml: Nvml, handle: Any, fields: Sequence[Field]
) -> tuple[dict[Field, float | int], dict[Field, str]]:
    """Return the values of numbered fields, and of those that never come the reason.

    Each element has a return code and a type of its own, and a failed one does not raise.
    """
    values: dict[Field, float | int] = {}
    never: dict[Field, str] = {}
    answers = nvml.ask("nvmlDeviceGetFieldValues", handle, list(fields))
    for field, answer in zip(fields, answers, strict=True):
        code = answer.nvmlReturn
        if code == 0 and 0 <= answer.valueType < len(MEMBERS):
            values[field] = getattr(answer.value, MEMBERS[answer.valueType])
        elif code in NEVER:
            never[field] = NEVER[code]
        elif code in (GPU_IS_LOST, RESET_REQUIRED):
            raise GpuGoneError("GPU is lost" if code == GPU_IS_LOST else "reset required", code)
    return values, never
