"""NCCL's own log (`NCCL_DEBUG=INFO`): rank, GPU and transports of each process of a communicator.

    vm:1182:1182 [3] NCCL INFO ncclCommInitRankConfig comm 0x24de2750 rank 3 nranks 4 cudaDev 3
    nvmlDev 3 busId 90 commId 0xbb7076cbf189c27b - Init START            (one line)
    vm:1182:1182 [3] NCCL INFO Channel 00/0 : 3[3] -> 0[0] via P2P/CUMEM
    vm:1182:1182 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/Socket/0

The lines carry no time, so neither do the rows. A communicator that was split off another does not
log its hash; where a profiler plugin is loaded, its line between start and end of the same thread's
initialisation does, in decimal, and the communicator's name as well. Connections may be made after
the initialisation, and their lines do not name the communicator: it is known where the process has
one. `Using network Socket` alone says nothing inside one node. With the subsystem TUNING rank 0
logs what it chose for each operation:

    vm:1182:1182 [0] NCCL INFO AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_queries.errors import IngestError

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
    r" cudaDev (?P<cuda>\d{1,9}) nvmlDev (?P<nvml>\d{1,9})"
    r" busId (?P<bus>[0-9a-f]{1,16})(?= [a-zA-Z-])"
    r"(?: commId (?P<id>0x[0-9a-f]{1,16}))?.*- Init (?:START|COMPLETE)"
)
LOCAL = re.compile(
    r"comm (?P<comm>0x[0-9a-f]+) rank \d+ nRanks \d+ nNodes (?P<nodes>\d{1,9}) localRanks \d+"
    r" localRank (?P<local>\d{1,9})\b"
)
PLUGIN = re.compile(
    r"PROFILER/Plugin: init commName: (?P<name>.{0,255}?) ?commHash: (?P<hash>\d{1,20})"
    r" nranks: (?P<ranks>\d{1,9}) rank: (?P<rank>\d{1,9})"
)
NETWORK = re.compile(r"Using network (?P<name>\w[\w .-]{0,39})$")
CHANNEL = re.compile(
    r"Channel \d+(?:/\d+)? : \d+\[\w+\] -> \d+\[\w+\](?: \[(?:send|receive)\])? via"
    r" (?P<kind>P2P|SHM|NET|CollNet|COLLNET)(?:/(?P<name>[A-Za-z][\w .-]{0,39}))?(?P<more>\S{0,60})"
)
CHOICE = re.compile(
    r"(?P<operation>[A-Z]\w{1,39}): (?P<bytes>\d{1,18}) Bytes -> Algo (?P<algorithm>[A-Z]\w{1,39})"
    r" proto (?P<protocol>[A-Z]\w{1,39})"
    r"(?: channel\{Lo\.\.Hi\}=\{(?P<low>\d{1,4})\.\.(?P<high>\d{1,4})\})?"
)
LOOKS_LIKE_INIT = re.compile(r"- Init (?:START|COMPLETE)\b")
NO_INIT = (
    "the line looks like a start or end of an initialisation, which has `host:pid:thread [N]` and "
    "`comm 0xN rank N nranks N cudaDev N nvmlDev N busId N`; this line has not"
)
NO_CHANNEL = (
    "the line looks like a channel, which has `Channel N/N : R[D] -> R[D] via TRANSPORT`; "
    "this line has not"
)
LOOKS_LIKE_CHANNEL = re.compile(r"Channel \d.* via (?:P2P|SHM|NET|CollNet|COLLNET)\b")
LISTED_MAX = 1_000  # rejects of a part: a log of another release may have millions
GPUDIRECT = "GDRDMA"
TRANSPORTS_MAX = 100_000  # of one part: a hostile log may make up networks
ALGORITHMS_MAX = 100_000  # of one part, for the same reason
TRANSPORTS = raw_tables.columns("comm_transports")
ALGORITHMS = raw_tables.columns("comm_algorithms")
SCHEMA = raw_tables.columns("rank_map", "gpu_uuid", "seen_at")


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
    nodes: int | None = None


@dataclass
class Reading:
    """Parser state between lines.

    under_way: initialisations in progress, by host, pid and thread
    networks: what each thread said last that it uses
    members: the first two communicators of each process, by host and pid
    """

    under_way: dict[tuple[str, str, str], Membership] = field(default_factory=dict)
    networks: dict[tuple[str, str, str], str] = field(default_factory=dict)
    members: dict[tuple[str, str], dict[str, Membership]] = field(default_factory=dict)

    def digest(self) -> list[object]:
        """Return what a later part's meaning depends on."""
        return [*self.under_way.values(), *self.networks.items(), *self.members.items()]

    def member_of(self, thread: tuple[str, str, str]) -> Membership | None:
        """Return the communicator that a line of a thread is about; None where it may be any."""
        if (member := self.under_way.get(thread)) is not None:
            return member
        known = self.members.get(thread[:2], {})
        return next(iter(known.values())) if len(known) == 1 else None


class NcclDebug(RecordedFile):
    """A log of NCCL, of one process or of many, with whatever else the job printed."""

    name: ClassVar[str] = "nccl-debug"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster."""
        super().__init__(path, options)
        self._reading = Reading()

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines that are not the job's own are NCCL's."""
        lines = [
            line for line in head.decode("utf-8", "replace").splitlines()[:200] if line.strip()
        ]
        return 2 * sum(_thread(line) is not None for line in lines) > len(lines)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.rank_map`, `raw.comm_transports` and `raw.comm_algorithms`.

        Lines of no interest are passed over.
        """
        head = files.head(self.path)
        if head.strip() and MARK.encode() not in head:
            raise IngestError(
                f"{self.path}: this is not a log of NCCL; expected lines "
                "`host:pid:thread [0] NCCL INFO ...` as NCCL_DEBUG=INFO writes them."
            )
        for part in files.parts(self.path):
            yield from self.read(part)

    def read(self, part: files.Part) -> Iterator[Batch]:
        """Yield the ranks, transports and algorithms of which the next lines say something."""
        digest = files.digest(part, "rank_map", self.options.cluster, self._reading.digest())
        found: dict[tuple[Any, ...], Membership] = {}
        transports: dict[tuple[str, str, int, str], int | None] = {}
        chosen: dict[tuple[str, int, str, int, str, str], int | None] = {}
        rejects: list[Reject] = []
        for number, line in enumerate(part.lines, part.first_line):
            if MARK not in line:
                continue
            text = line[:LINE_MAX_CHARS].partition(MARK)[2]
            thread = _thread(line)
            if (lack := _missing(text, thread)) and len(rejects) < LISTED_MAX:
                rejects.append(Reject(number, lack, json_lines.printable(line, 500)))
            if thread is None:
                continue
            member = self._read(thread, text)
            if member is not None and member.comm_id is not None:
                found[member.comm_id, member.rank, member.node, member.pid] = member
            if (name := self._transport(thread, text)) and len(transports) < TRANSPORTS_MAX:
                of = self._reading.member_of(thread)
                comm_id = (of.comm_id if of else None) or ""
                key = (comm_id, thread[0], int(thread[1]), name)
                transports[key] = (of.nodes if of else None) or transports.get(key)
            if (match := CHOICE.match(text)) and len(chosen) < ALGORITHMS_MAX:
                low, high = match["low"], match["high"]
                made = (
                    match["operation"],
                    int(match["bytes"]),
                    match["algorithm"],
                    match["protocol"],
                )
                chosen[thread[0], int(thread[1]), *made] = (
                    int(high) - int(low) + 1 if high else None
                )
        rejects += part.cut
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
        if transports:
            used = [
                (self.name, self.options.cluster, *key[:3], nodes, key[3])
                for key, nodes in transports.items()
            ]
            frame = pl.DataFrame(used, schema=TRANSPORTS, orient="row")
            yield Batch("comm_transports", frame, self.name, str(self.path), f"{digest}-transports")
        if chosen:
            sizes = [
                (self.name, self.options.cluster, *key, count) for key, count in chosen.items()
            ]
            frame = pl.DataFrame(sizes, schema=ALGORITHMS, orient="row")
            yield Batch("comm_algorithms", frame, self.name, str(self.path), f"{digest}-algorithms")

    def _transport(self, thread: tuple[str, str, str], text: str) -> str | None:
        """Return the transport that a line says is used."""
        if match := CHANNEL.match(text):
            kind, name, more = match["kind"], match["name"], match["more"]
            if kind == "SHM" or name is None:
                return kind
            return f"{kind}/{name}{f'/{GPUDIRECT}' if GPUDIRECT in more else ''}"
        if match := NETWORK.match(text):
            networks = self._reading.networks
            if len(networks) >= THREADS_MAX:
                networks.pop(next(iter(networks)))
            networks[thread] = match["name"].strip()
        elif match := LOCAL.match(text):
            network = self._reading.networks.get(thread)
            if network and int(match["nodes"]) > 1:
                return f"NET/{network}"
        return None

    def _read(self, thread: tuple[str, str, str], text: str) -> Membership | None:
        """Return the rank that a line says something of, with all that is known of it by now."""
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
            self._remember(thread, member)
            if text.rstrip().endswith("COMPLETE"):
                under_way.pop(thread, None)
            return member
        member = under_way.get(thread)
        if member is None:
            return None
        if (match := LOCAL.match(text)) and match["comm"] == member.comm:
            member.local_rank = min(int(match["local"]), INT32_MAX)
            member.nodes = int(match["nodes"])
        elif (match := PLUGIN.match(text)) and int(match["rank"]) == member.rank:
            member.comm_id = f"0x{int(match['hash']) & 2**64 - 1:x}"
            member.comm_name = json_lines.printable(match["name"].strip(), 255) or None
        return member

    def _remember(self, thread: tuple[str, str, str], member: Membership) -> None:
        members = self._reading.members
        if thread[:2] not in members and len(members) >= THREADS_MAX:
            members.pop(next(iter(members)))
        known = members.setdefault((thread[0], thread[1]), {})
        if len(known) < 2:  # more are as ambiguous
            known[member.comm] = member


def _missing(text: str, thread: tuple[str, str, str] | None) -> str:
    """Return why a line that looks like one that is read is not; '' where it looks like none."""
    if LOOKS_LIKE_INIT.search(text) and (thread is None or INIT.match(text) is None):
        return NO_INIT
    if LOOKS_LIKE_CHANNEL.match(text) and (thread is None or CHANNEL.match(text) is None):
        return NO_CHANNEL
    return ""


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
