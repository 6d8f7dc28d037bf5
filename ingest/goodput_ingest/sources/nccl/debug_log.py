"""NCCL's own log (`NCCL_DEBUG=INFO`): which process is which rank of a communicator, on which GPU.

    vm:1182:1182 [3] NCCL INFO ncclCommInitRankConfig comm 0x24de2750 rank 3 nranks 4 cudaDev 3
    nvmlDev 3 busId 90 commId 0xbb7076cbf189c27b - Init START            (one line)

The lines carry no time, so neither do the rows. A communicator that was split off another does not
log its hash; where a profiler plugin is loaded, its line between start and end of the same thread's
initialisation does, in decimal, and the communicator's name as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, json_lines
from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INT32_MAX = 2**31 - 1
LINE_MAX_CHARS = 2_000  # of the line that is looked at; those of interest have 200
THREADS_MAX = 10_000  # threads that are remembered in the middle of an initialisation
MARK = " NCCL INFO "
# a launcher may write its own words before the host (`[1,0]<stdout>:`, `3: `, a time)
THREAD = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,254}):(?P<pid>\d{1,18}):(?P<tid>\d{1,18}) \[-?\d+\]$"
)
INIT = re.compile(
    r"\w+ comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d{1,9}) nranks (?P<ranks>\d{1,9})"
    r" cudaDev (?P<cuda>\d{1,9}) nvmlDev (?P<nvml>\d{1,9}) busId (?P<bus>[0-9a-f]{1,16})"
    r"(?: commId (?P<id>0x[0-9a-f]{1,16}))?.*- Init (?:START|COMPLETE)"
)
LOCAL = re.compile(
    r"comm (?P<comm>0x[0-9a-f]+) rank \d+ nRanks \d+ nNodes \d+ localRanks \d+"
    r" localRank (?P<local>\d{1,9})\b"
)
PLUGIN = re.compile(
    r"PROFILER/Plugin: init commName: (?P<name>.{0,255}?) ?commHash: (?P<hash>\d{1,20})"
    r" nranks: (?P<ranks>\d{1,9}) rank: (?P<rank>\d{1,9})"
)
SCHEMA: dict[str, Any] = {
    "source": pl.String,
    "cluster": pl.String,
    "comm_id": pl.String,
    "comm_name": pl.String,
    "rank": pl.Int32,
    "ranks": pl.Int32,
    "node": pl.String,
    "pid": pl.Int64,
    "local_rank": pl.Int32,
    "gpu_index": pl.Int32,
    "pci_bus_id": pl.String,
}


@dataclass
class Membership:
    """One rank of a communicator, from the lines of its initialisation so far."""

    node: str
    pid: int
    comm: str  # the communicator's address in the process, unique while it lives
    rank: int
    ranks: int
    gpu_index: int
    pci_bus_id: str | None
    comm_id: str | None = None
    comm_name: str | None = None
    local_rank: int | None = None


@dataclass
class Reading:
    """Parser state between lines: initialisations in progress, by host, pid and thread."""

    under_way: dict[tuple[str, str, str], Membership] = field(default_factory=dict)

    def digest(self) -> list[Membership]:
        """Return what a later part's meaning depends on."""
        return list(self.under_way.values())


class NcclDebug:
    """A log of NCCL, of one process or of many, with whatever else the job printed."""

    name: ClassVar[str] = "nccl-debug"
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster."""
        self.path = path
        self.options = options
        self._reading = Reading()

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines that are not the job's own are NCCL's."""
        lines = [
            line for line in head.decode("utf-8", "replace").splitlines()[:200] if line.strip()
        ]
        return 2 * sum(_thread(line) is not None for line in lines) > len(lines)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.rank_map`, part by part; lines of no interest are passed over."""
        head = files.head(self.path)
        if head.strip() and MARK.encode() not in head:
            raise IngestError(
                f"{self.path}: this is no log of NCCL; expected lines "
                "`host:pid:thread [0] NCCL INFO ...` as NCCL_DEBUG=INFO writes them."
            )
        for part in files.parts(self.path):
            yield from self.read(part)

    def read(self, part: files.Part) -> Iterator[Batch]:
        """Yield the ranks of which the next lines say something."""
        digest = files.digest(part, "rank_map", self.options.cluster, self._reading.digest())
        found: dict[tuple[Any, ...], Membership] = {}
        for line in part.lines:
            member = self._read(line)
            if member is not None and member.comm_id is not None:
                found[member.comm_id, member.rank, member.node, member.pid] = member
        rejects = [Reject(part.first_line + len(part.lines), part.damage)] if part.damage else []
        rows = [
            (
                *(self.name, self.options.cluster),
                *(m.comm_id, m.comm_name, m.rank, m.ranks, m.node, m.pid),
                *(m.local_rank, m.gpu_index, m.pci_bus_id),
            )
            for m in found.values()
        ]
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        yield Batch("rank_map", frame, self.name, str(self.path), digest, rejects)

    def _read(self, line: str) -> Membership | None:
        """Return the rank that a line says something of, with all that is known of it by now."""
        if MARK not in line:
            return None
        thread, text = _thread(line), line[:LINE_MAX_CHARS].partition(MARK)[2]
        if thread is None:
            return None
        under_way = self._reading.under_way
        if match := INIT.match(text):
            member = under_way.get(thread)
            if member is None or member.comm != match["comm"]:
                member = _member(thread, match)
                if len(under_way) >= THREADS_MAX:
                    under_way.pop(next(iter(under_way)))
                under_way[thread] = member
            if match["id"]:
                member.comm_id = f"0x{int(match['id'], 16):x}"
            if text.rstrip().endswith("COMPLETE"):
                under_way.pop(thread, None)
            return member
        member = under_way.get(thread)
        if member is None:
            return None
        if (match := LOCAL.match(text)) and match["comm"] == member.comm:
            member.local_rank = min(int(match["local"]), INT32_MAX)
        elif (match := PLUGIN.match(text)) and int(match["rank"]) == member.rank:
            member.comm_id = f"0x{int(match['hash']) & 2**64 - 1:x}"
            member.comm_name = json_lines.printable(match["name"].strip(), 255) or None
        return member


def _thread(line: str) -> tuple[str, str, str] | None:
    """Return host, process and thread that wrote a line of NCCL."""
    before = line[:LINE_MAX_CHARS].partition(MARK)[0]
    match = THREAD.search(before[-400:]) if len(before) < len(line[:LINE_MAX_CHARS]) else None
    return (match["host"], match["pid"], match["tid"]) if match else None


def _member(thread: tuple[str, str, str], match: re.Match[str]) -> Membership:
    return Membership(
        node=thread[0],
        pid=int(thread[1]),
        comm=match["comm"],
        rank=int(match["rank"]),
        ranks=int(match["ranks"]),
        gpu_index=int(match["nvml"]),
        pci_bus_id=_pci(int(match["bus"], 16)),
    )


def _pci(bus: int) -> str | None:
    """Return the address that NCCL packs into one number: domain, bus, device, function."""
    domain, rest = divmod(bus, 1 << 20)
    if domain >= 1 << 32:
        return None
    return pci_bus_id(f"{domain:08x}:{rest >> 12:02x}:{rest >> 4 & 0xFF:02x}.{rest & 0xF:x}")
