"""The GPU inventory that a site writes: a row a GPU, or a row a node with the number of its GPUs.

    node,gpu_index,slurm_index,gpu_uuid,pci_bus_id,gpu_model,valid_from,valid_to
    node001,0,0,GPU-5ab9...,00000000:19:00.0,H100,2026-11-01T00:00:00Z,
    node,gpus,gpu_model,mig,valid_from
    mig01,1,,"1g.10gb:4,3g.40gb:1",2026-11-20T11:45:09Z
    node,rack,row,feed
    node001,r07,B,A+B

Without UUIDs the GPUs are numbered slots `<node>#<slurm index>`. `mig` lists the instances in the
order of the node's gres list; an empty time is as far as there is evidence, or still there. A row
without GPUs says only where the node stands: in which rack, row of racks, and on which power feed.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import csv_table, gres, pci, raw_tables
from goodput_ingest.formats.gres import GPU_INSTANCES, GPUS, slot_rows
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.rows import SiteTable
from goodput_queries.evidence.batch import Reject

NODE_RACKS = raw_tables.columns("node_racks", "source")
PLACE_MAX_CHARS = 100
Place = dict[str, str | None]
_Slot = tuple[dict[str, object], list[dict[str, object]]]  # a GPU and its MIG instances
_NAME = re.compile(r"[^\s,\[\]#]{1,255}")


class Inventory(SiteTable):
    """An inventory of GPUs, nodes and racks."""

    name: ClassVar[str] = "inventory"
    table = "gpus"
    columns = (
        *("cluster", "node", "gpu_index", "slurm_index", "gpu_uuid", "pci_bus_id", "gpu_model"),
        *("driver_version", "vbios_version", "power_limit_w", "slowdown_temperature_c"),
        *("gpus", "mig", "valid_from", "valid_to"),
        *("rack", "row", "feed"),
    )
    required = ("node",)
    any_of = frozenset({"gpus", "gpu_uuid", "gpu_index", "slurm_index", "rack"})

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the options."""
        super().__init__(path, options)
        self._racks = _Racks()

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> list[_Slot]:
        """Return the GPUs of a row; its rack is kept."""
        found = list(self._gpus(row, instant))
        cluster = row.get("cluster") or self.options.cluster
        self._racks.add(cluster, row, instant(row.get("valid_from", "")))
        return found

    def tables(self, rows: list[list[_Slot]], rejects: list[Reject]) -> list[Parsed]:
        """Return GPUs, their instances, and racks if there are any."""
        found = list(chain.from_iterable(rows))
        instances = [instance for _, parts in found for instance in parts]
        tables = [
            Parsed("gpus", frame([gpu for gpu, _ in found], GPUS), rejects),
            Parsed("gpu_instances", frame(instances, GPU_INSTANCES)),
        ]
        if racks := self._racks.rows():
            tables.append(Parsed("node_racks", frame(racks, NODE_RACKS)))
        return tables

    def _gpus(self, row: dict[str, str], instant: csv_table.Instant) -> Iterator[_Slot]:
        """Yield the GPUs of a row, each with its MIG instances; ValueError says what is wrong."""
        node, uuid = row["node"], row.get("gpu_uuid") or None
        if not _NAME.fullmatch(node):
            raise ValueError(f"{node[:40]!r} is not a node name")
        gpus, first = _count(row, "gpus"), _count(row, "slurm_index")
        if gpus is None:
            gpus = 1
            if uuid is None and first is None:
                if row.get("rack"):
                    return
                raise ValueError("it has neither gpu_uuid nor slurm_index nor gpus nor rack")
        if gpus != 1 and (uuid or row.get("gpu_index") or row.get("pci_bus_id")):
            raise ValueError(f"one row cannot name {gpus} GPUs; write a row a GPU, or gpus alone")
        begin = instant(row.get("valid_from", ""))
        end = instant(row.get("valid_to", ""))
        if begin is not None and end is not None and end <= begin:
            raise ValueError("valid_to is not after valid_from")
        shared: dict[str, object] = {
            "cluster": row.get("cluster") or self.options.cluster,
            "valid_from_at": begin,
            "valid_to_at": end,
        }
        found = _slots(row.get("mig", ""), gpus, first or 0)
        for slot in found:
            gpu, parts = slot_rows(node, slot, uuid)
            gpu["gpu_model"] = row.get("gpu_model") or slot.model
            gpu["gpu_index"] = _count(row, "gpu_index")
            for name in ("driver_version", "vbios_version"):
                gpu[name] = row.get(name, "")[:TEXT_MAX_CHARS] or None
            for name in ("power_limit_w", "slowdown_temperature_c"):
                gpu[name] = _limit(row, name)
            gpu["pci_bus_id"] = _pci_bus_id(row.get("pci_bus_id", ""))
            if uuid is not None and first is None:
                gpu["slurm_index"] = None
            yield gpu | shared, [part | shared for part in parts]


class _Racks:
    """Where nodes stand: of several rows of a node the one with the latest begin, then the last."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, str], tuple[datetime | None, Place]] = {}

    def add(self, cluster: str | None, row: dict[str, str], begin: datetime | None) -> None:
        """Add the place that a row gives, if it names a rack; ValueError for one without."""
        place = {name: row.get(name) or None for name in ("rack", "row", "feed")}
        if not any(place.values()):
            return
        if place["rack"] is None:
            raise ValueError("it has a row or a feed without a rack")
        if long := next((v for v in place.values() if v and len(v) > PLACE_MAX_CHARS), None):
            raise ValueError(f"{long[:40]!r}... is longer than {PLACE_MAX_CHARS} characters")
        before, _ = self._found.get((cluster, row["node"]), (None, {}))
        if before is None or (begin is not None and begin >= before):
            named = {"cluster": cluster, "node": row["node"], "rack_row": place.pop("row"), **place}
            self._found[cluster, row["node"]] = begin, named

    def rows(self) -> list[Place]:
        """Return the rows of raw.node_racks."""
        return [named for _, named in self._found.values()]


def _count(row: dict[str, str], column: str) -> int | None:
    text = row.get(column, "")
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > gres.GPUS_PER_NODE_MAX:
        raise ValueError(
            f"{column} {text[:40]!r} is not a number from 0 to {gres.GPUS_PER_NODE_MAX}"
        )
    return int(text)


def _limit(row: dict[str, str], column: str) -> float | None:
    text = row.get(column, "")
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text) or not float(text):
        raise ValueError(f"{column} {text[:40]!r} is not a number above 0")
    return float(text)


def _slots(mig: str, gpus: int, first_index: int) -> list[gres.Slot]:
    """Return the row's GPUs; where `mig` lists instances they must fill exactly that many."""
    if not mig:
        return [gres.Slot(first_index + i, None) for i in range(gpus)]
    entries = [entry for entry in re.split(r"[,;\s]+", mig) if entry]
    listed = gres.gpu_gres(",".join(f"gpu:{entry.removeprefix('gpu:')}" for entry in entries))
    if odd := next((g.type for g in listed if gres.mig_profile(g.type) is None), None):
        raise ValueError(f"mig has {odd[:40]!r} where a profile as 3g.40gb is expected")
    found = gres.slots(listed, first_index)
    if len(found) != gpus or len(listed) != len(entries):
        raise ValueError(f"mig {mig[:80]!r} fills {len(found)} GPUs, the row has {gpus}")
    return found


def _pci_bus_id(text: str) -> str | None:
    found = pci.pci_bus_id(text)
    if text and found is None:
        raise ValueError(f"pci_bus_id {text[:40]!r} is not like 00000000:19:00.0")
    return found
