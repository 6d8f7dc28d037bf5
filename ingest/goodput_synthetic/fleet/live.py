"""A made-up fleet whose clock runs: what each source wrote since it was last asked.

Each source is a `Feed`, which a collector polls as it polls a real one: what the source wrote in
the meantime is a file in the source's own format, read by the code that reads such files. The
fleet is imagined to its end at the start, and a feed never writes what lies after its `now`.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.live.config import Collector
from goodput_ingest.source import Batch, ReadOptions
from goodput_ingest.sources.registry import sources
from goodput_synthetic.fleet import telemetry_of
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.world import World
from goodput_synthetic.fleet.written import accounting, events, hosts
from goodput_synthetic.fleet.written.telemetry import Telemetry

INTERVAL_S = 5.0
CATCH_UP_S = 900  # that one poll writes at most, after a pause of the server
OVERLAP_S = 60  # before what the store has: sources write late within a reading's interval


@dataclass(frozen=True)
class Feed:
    """What one source of the fleet wrote; `write(folder, since_ms, until_ms)` returns its files."""

    name: ClassVar[str] = "demo"

    reads: str
    start: datetime
    known_s: int
    write: Callable[[Path, int, int], list[Path]] = field(repr=False)
    interval_s: float = INTERVAL_S
    _until_ms: list[int] = field(default_factory=list, init=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the name of the source, as the Data page shows it."""
        return f"demo:{self.reads}"

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what the source wrote since the last poll, or since what the store has."""
        since = self._since(reached)
        now_ms = int((now.replace(tzinfo=UTC) - self.start) / timedelta(milliseconds=1))
        until = min(now_ms, since + CATCH_UP_S * SECOND)
        if until <= since:
            return
        observed = (self.start + timedelta(milliseconds=until)).astimezone(UTC)
        options = ReadOptions(accounting.CLUSTER, ZoneInfo("UTC"), observed.replace(tzinfo=None))
        with tempfile.TemporaryDirectory(prefix="goodput-demo-") as folder:
            for path in self.write(Path(folder), since, until):
                for batch in sources()[self.reads](path, options).extract():
                    yield replace(batch, origin=self.origin)
        self._until_ms[:] = [until]

    def probe(self) -> list[str]:
        """Return nothing: a made-up source is always there."""
        return []

    def _since(self, reached: Mapping[str, datetime]) -> int:
        if self._until_ms:
            return self._until_ms[0]
        if (known := reached.get(self.origin)) is None:
            return self.known_s * SECOND
        of_store = (known.replace(tzinfo=UTC) - self.start) / timedelta(milliseconds=1)
        return max(self.known_s * SECOND, int(of_store) - OVERLAP_S * SECOND)


def feeds(world: World, known_s: int) -> list[Collector]:
    """Return the sources of a fleet whose evidence up to `known_s` is in the store."""
    writers: dict[str, Callable[[Path, int, int], list[Path]]] = {
        "slurm": _Slurm(world).write,
        "telemetry-parquet": _Readings(world).write,
        "job-events": _Lines("events.jsonl", _job_events(world, known_s)).write,
        "kernel-log": _Lines("kernel.log", world.kernels.lines).write,
        "node-exporter": _Hosts(world).write,
    }
    return [
        Collector(Feed(reads, world.start, known_s, write), reads)
        for reads, write in writers.items()
    ]


def _job_events(world: World, known_s: int) -> list[tuple[int, str]]:
    lives = [life for life in world.lives if life.end > (known_s - OVERLAP_S) * SECOND]
    return events.job_events(world.fleet, lives, world.start_s)


@dataclass(frozen=True)
class _Lines:
    """A log: its lines with their times, in order."""

    name: str
    lines: list[tuple[int, str]]

    def write(self, folder: Path, since_ms: int, until_ms: int) -> list[Path]:
        found = [line for at, line in self.lines if since_ms < at <= until_ms]
        return _file(folder / self.name, found)


@dataclass(frozen=True)
class _Slurm:
    """Slurm's commands: jobs, their GPUs, nodes and outages, where something changed."""

    world: World

    def write(self, folder: Path, since_ms: int, until_ms: int) -> list[Path]:
        since_s, now_s = since_ms // SECOND, until_ms // SECOND
        changes = [
            at
            for run in self.world.schedule.runs
            for at in (run.submit_s, run.start_s, run.end_s)
            if at is not None
        ]
        changes += [o.start_s for o in self.world.schedule.outages]
        changes += [o.end_s for o in self.world.schedule.outages if o.end_s is not None]
        if not any(since_s < at <= now_s for at in changes):
            return []
        schedule, lives = self.world.known_at(now_s)
        return accounting.write_changed(
            folder, self.world.fleet, schedule, lives, self.world.start, (since_s, now_s)
        )


@dataclass(frozen=True)
class _Hosts:
    """node_exporter of all hosts."""

    world: World

    def write(self, folder: Path, since_ms: int, until_ms: int) -> list[Path]:
        world = self.world
        window = (since_ms // SECOND + 1, until_ms // SECOND + 1)
        if not any(at % hosts.INTERVAL_S == 0 for at in range(*window)):
            return []
        pages = hosts.pages(
            world.fleet, world.schedule, [], world.start, world.total_s, world.seed, window
        )
        return _file(folder / "node_exporter.prom", pages)


class _Readings:
    """The exporter of all GPUs: a round is made up once, and its rows appear at their times."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._telemetry: Telemetry | None = None
        self._next_round = 0
        self._frame: pl.DataFrame | None = None

    def write(self, folder: Path, since_ms: int, until_ms: int) -> list[Path]:
        interval_ms, start_us = self._world.scrapes.interval_ms, self._world.start_s * 1_000_000
        if self._telemetry is None:
            self._telemetry = telemetry_of(self._world)
            self._next_round = max(0, since_ms // interval_ms - 1)
        last = self._world.total_s * SECOND // interval_ms
        rounds = min(until_ms // interval_ms + 1, last) - self._next_round + 1
        parts = [] if self._frame is None else [self._frame]
        if rounds > 0 and self._next_round < last:
            rounds = min(rounds, last - self._next_round)
            parts.append(self._telemetry.frame(self._next_round, rounds, start_us))
            self._next_round += rounds
        frame = pl.concat(parts)
        since, until = (
            pl.lit(start_us + ms * 1_000).cast(pl.Datetime("us", "UTC"))
            for ms in (since_ms, until_ms)
        )
        self._frame = frame.filter(pl.col("ts") > until)
        found = frame.filter(pl.col("ts").is_between(since, until, closed="right"))
        if found.is_empty():
            return []
        path = folder / "gpus.parquet"
        found.write_parquet(path)
        return [path]


def _file(path: Path, lines: list[str]) -> list[Path]:
    if not lines:
        return []
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return [path]
