"""Fields of Kubernetes objects: parts that may be absent, quantities, conditions.

What violates the format raises FieldError, whose text is the reason of the reject.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.kubernetes.pods import GPUS_MAX, TEXT_MAX_CHARS, gpu_resource, printed

MESSAGE_MAX_CHARS: Final = 500
NUMBER_MAX: Final = 2**31 - 1
QUANTITY_MAX: Final = 2.0**62
_QUANTITY: Final = re.compile(
    r"\+?(\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?"
)
_SCALES: Final = {suffix: 1000.0**n for n, suffix in enumerate(("n", "u", "m"), -3)} | {
    scale + binary: base**n
    for binary, base in (("", 1000.0), ("i", 1024.0))
    for n, scale in enumerate(("K" if binary else "k", "M", "G", "T", "P", "E"), 1)
}


def part(fields: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the object below these keys; empty where it is absent."""
    found: Any = fields
    for key in path:
        found = found.get(key)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise FieldError(f"{key} is {json_lines.kind(found)}, expected an object")
    return dict(found)


def listed(fields: Mapping[str, Any], *path: str) -> list[dict[str, Any]]:
    """Return the objects of the list below these keys; none where it is absent."""
    *before, name = path
    found = part(fields, *before).get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise FieldError(f"{name} is not a list of objects")
    return found


def word(fields: Mapping[str, Any], name: str, max_chars: int = TEXT_MAX_CHARS) -> str:
    """Return a text, capped; '' where it is absent."""
    return json_lines.text(dict(fields), name, max_chars) or ""


def number(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a number of things; None where it is absent."""
    return json_lines.whole(dict(fields), name, 0, NUMBER_MAX)


def capped(numbers: Iterable[int | None]) -> int:
    """Return the sum of those that are known, at most what a column holds."""
    return min(sum(filter(None, numbers)), NUMBER_MAX)


def when(fields: Mapping[str, Any], name: str) -> datetime | None:
    """Return a moment, naive UTC; None where it is absent."""
    return json_lines.moment(dict(fields), name) if fields.get(name) is not None else None


def quantity(fields: Mapping[str, Any], name: str) -> float | None:
    """Return a quantity (`40Gi`, `500m`) in its base unit; None where it is absent."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = repr(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError(f"{json_lines.printable(name, 80)} is not a quantity")
    digits, suffix, exponent = match.groups()
    found = float(digits) * _SCALES.get(suffix or "", 1.0) * 10.0 ** int(exponent or 0)
    if found >= QUANTITY_MAX:
        raise FieldError(f"{json_lines.printable(name, 80)} is out of range")
    return found


def why_of(condition: Mapping[str, Any]) -> str | None:
    """Return reason and message of a condition; None where it has neither."""
    said = word(condition, "reason"), word(condition, "message", MESSAGE_MAX_CHARS)
    return ": ".join(filter(None, said)) or None


def gpus(amounts: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of GPUs by resource, printed as kube-state-metrics does; others not."""
    found: dict[str, int] = {}
    for name in amounts:
        if gpu_resource(resource := printed(name[:TEXT_MAX_CHARS])) is not None:
            amount = quantity(amounts, name) or 0
            if amount > GPUS_MAX * GPUS_MAX:
                raise FieldError(f"{resource} is out of range")
            found[resource] = found.get(resource, 0) + int(amount)
    return found


@dataclass(frozen=True)
class ApiObject:
    """An object of the API. is_deleted: the event of a watch in which it has gone."""

    group: str
    kind: str
    fields: Mapping[str, Any]
    is_deleted: bool = False

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Its name, namespace, owners and times."""
        return part(self.fields, "metadata")

    @cached_property
    def spec(self) -> dict[str, Any]:
        """What was asked for."""
        return part(self.fields, "spec")

    @cached_property
    def status(self) -> dict[str, Any]:
        """What has become of it."""
        return part(self.fields, "status")

    @property
    def namespace(self) -> str:
        """Its namespace; '' of the whole cluster."""
        return word(self.metadata, "namespace")

    @property
    def name(self) -> str:
        """Its name, which it must have."""
        if not (name := word(self.metadata, "name")):
            raise FieldError("metadata.name is missing")
        return name

    @property
    def created(self) -> datetime:
        """When it was made, naive UTC; it must say so."""
        return json_lines.moment(self.metadata, "creationTimestamp")

    @property
    def owners(self) -> list[dict[str, Any]]:
        """What made it, its controller first."""
        found = listed(self.metadata, "ownerReferences")
        return sorted(found, key=lambda owner: owner.get("controller") is not True)

    @property
    def job_id(self) -> str:
        """Name of the job that it belongs to, as pods of the job are called together."""
        of = [one for one in self.owners if word(one, "kind") != "Pod" or len(self.owners) == 1]
        return f"{self.namespace}/{word(of[0], 'name') if of else self.name}"

    @cached_property
    def conditions(self) -> dict[str, dict[str, Any]]:
        """The conditions of its status by type."""
        return {word(one, "type"): one for one in listed(self.status, "conditions")}

    def since(self, *types: str, status: str = "True") -> datetime | None:
        """Return since when the first of these conditions that it has now holds, naive UTC."""
        for name in types:
            one = self.conditions.get(name, {})
            if one.get("status") == status:
                return when(one, "lastTransitionTime")
        return None

    def moments(self) -> Iterator[datetime]:
        """Yield the times that it has: it was read after them."""
        yield self.created
        for one in self.conditions.values():
            for name in ("lastTransitionTime", "lastUpdateTime"):
                if (at := when(one, name)) is not None:
                    yield at
