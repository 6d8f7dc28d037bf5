"""GPUs that pods have by ResourceClaims (DRA), by name and share.

A ResourceSlice says what the devices of a pool are; the status of a ResourceClaim which of them it
was allocated, and for which pods.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.sources.kubernetes.objects.fields import (
    ApiObject,
    listed,
    part,
    quantity,
    word,
)
from goodput_ingest.sources.kubernetes.pods import printed

GPU, MIG = "gpu", "mig"
TYPES: Final = {"gpu": GPU, "amdgpu": GPU, "mig": MIG}  # others are no GPUs: `vfio`, `channel`
GPU_DRIVER: Final = re.compile(r"gpu\.[a-z0-9.-]+")  # where no slice says what its devices are
WHOLE, SHARED = "nvidia_com_gpu", "nvidia_com_gpu_shared"
Key = tuple[str, str, str]  # driver, pool, device
Claim = tuple[str, list[str], list[dict[str, Any]]]  # name, uids of pods, allocated devices


@dataclass(frozen=True)
class Device:
    """A device of a ResourceSlice. memory_bytes: 0: not said."""

    kind: str
    node: str = ""
    gpu_uuid: str = ""
    profile: str = ""
    model: str = ""
    memory_bytes: int = 0
    pci_bus_id: str | None = None
    driver_version: str | None = None


@dataclass(frozen=True)
class Allocated:
    """What a pod has of a device: percent: None: a share of unknown size."""

    resource: str
    gpu_uuid: str
    percent: int | None = 100


@dataclass
class Claims:
    """The GPUs of slices, and which pods have which, by the uid of the pod."""

    devices: dict[Key, Device] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)  # by uid, as they are last

    def add_slice(self, found: ApiObject) -> None:
        """Take the devices of a ResourceSlice."""
        driver, pool = word(found.spec, "driver"), word(part(found.spec, "pool"), "name")
        for one in listed(found.spec, "devices"):
            of = part(one, "basic") or one  # v1beta1 has a level between
            node = word(of, "nodeName") or word(found.spec, "nodeName")
            self.devices[driver, pool, word(one, "name")] = _device(driver, of, node)

    def add_claim(self, found: ApiObject) -> None:
        """Take a ResourceClaim, whose slice may come later; one that has gone holds nothing."""
        uid = word(found.metadata, "uid") or f"{found.namespace}/{found.name}"
        reserved = listed(found.status, "reservedFor")
        users = sorted({word(one, "uid") for one in reserved if one.get("resource") == "pods"})
        results = listed(found.status, "allocation", "devices", "results")
        self.claims.pop(uid, None)
        if not found.is_deleted:
            self.claims[uid] = f"{found.namespace}/{found.name}", users, results

    def by_pod(self) -> tuple[dict[str, list[Allocated]], list[str]]:
        """Return what each pod has, by its uid, and what of claims cannot be counted."""
        found: dict[str, list[Allocated]] = defaultdict(list)
        errors: list[str] = []
        for name, users, results in self.claims.values():
            for result in results:
                try:
                    for place, uid in enumerate(users):
                        if (one := self._allocated(result, place, len(users))) is not None:
                            found[uid].append(one)
                except FieldError as error:
                    errors.append(f"ResourceClaim {name}: {error}")
        return found, errors

    def _allocated(self, result: Mapping[str, Any], place: int, users: int) -> Allocated | None:
        """Return what one of several users has of a device; None: it is no GPU, or not held."""
        key = word(result, "driver"), word(result, "pool"), word(result, "device")
        device = self.devices.get(key)
        if result.get("adminAccess") is True:  # it watches a device that others hold
            return None
        if device is None:
            if GPU_DRIVER.fullmatch(key[0]) is None:
                return None
            if "-mig-" in key[2]:
                raise FieldError(
                    f"device {key[2]} is in no ResourceSlice of the file: its MIG profile is "
                    "unknown; add resourceslices to what kubectl gets"
                )
            device = Device(GPU)
        if device.kind == MIG:
            return Allocated(f"nvidia_com_mig_{printed(device.profile)}", "")
        if device.kind != GPU:
            return None
        percent = _percent(result, device)
        if percent is None:
            return Allocated(SHARED, "", None)
        # claims of several pods divide what they have; what is over goes to the first
        percent = percent // users + (place < percent % users)
        return Allocated(WHOLE if percent == 100 else SHARED, device.gpu_uuid, percent)


def _device(driver: str, fields: Mapping[str, Any], node: str) -> Device:
    attributes = {
        name.rpartition("/")[2]: str(next(iter(part(fields, "attributes", name).values()), ""))
        for name in part(fields, "attributes")
    }
    default = GPU if GPU_DRIVER.fullmatch(driver) else ""
    of = {name: word(attributes, name) for name in attributes}
    return Device(
        kind=TYPES.get(of.get("type", default), ""),
        node=node,
        gpu_uuid=of.get("parentUUID") or of.get("uuid", ""),
        profile=of.get("profile", ""),
        model=of.get("productName", ""),
        memory_bytes=int(_memory(part(fields, "capacity")) or 0),
        pci_bus_id=pci_bus_id(of.get("pciBusID")),
        driver_version=of.get("driverVersion") or None,
    )


def _memory(capacity: Mapping[str, Any]) -> float | None:
    """Return the bytes of a capacity: a quantity, or an object with one as its value."""
    for name, value in capacity.items():
        if name.rpartition("/")[2] == "memory":
            return quantity(value if isinstance(value, dict) else {"value": value}, "value")
    return None


def _percent(result: Mapping[str, Any], device: Device) -> int | None:
    """Return the percentage of a GPU that a result consumes by its memory; None: not known."""
    if result.get("shareID") is None and not part(result, "consumedCapacity"):
        return 100
    memory = _memory(part(result, "consumedCapacity"))
    if memory is None or not device.memory_bytes:
        return None
    return min(max(int(100 * memory / device.memory_bytes), 1), 100)
