"""The jobs' events: job events v1, as a log collector keeps them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import numpy as np

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, Fleet, Ints
from goodput_synthetic.fleet.habits import MINUTE, SECOND
from goodput_synthetic.fleet.lives import Life, rank_waits
from goodput_synthetic.fleet.training import Attempt

HOURS_PER_FILE = 6
HOUR_MS = 60 * MINUTE
FOREVER_MS = 2**62
FIRST_PID = 4_000
LOSS_FIRST, LOSS_LAST, LOSS_NOISE = 11.0, 1.7, 0.02
LOST_STEPS = 3  # with a loss that is no number, before the job gives up
Lines = list[tuple[int, str]]


def write_job_events(
    folder: Path, fleet: Fleet, lives: list[Life], start_s: int, total_ms: int
) -> None:
    """Write the events of all jobs that send any, six hours a file, in order of time."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks, width = _reporting(fleet, lives), HOURS_PER_FILE * HOUR_MS
    between = [line for rank in ranks for line in rank.between_steps(start_s)]
    for begin in range(0, total_ms, width):
        when = datetime.fromtimestamp(start_s + begin // SECOND, UTC)
        until = begin + width if begin + width < total_ms else total_ms + 1
        hours = [(since, min(since + HOUR_MS, until)) for since in range(begin, until, HOUR_MS)]
        texts = filter(None, (_text(ranks, between, start_s, hour) for hour in hours))
        for first in texts:  # a file without events is not there
            write_gzip(folder / f"events-{when:%Y%m%dT%H}.jsonl.gz", chain([first], texts))


def job_events(fleet: Fleet, lives: list[Life], start_s: int) -> Lines:
    """Return the events of all jobs that send any: (ms from the start, the line), by time."""
    found: Lines = []
    for rank in _reporting(fleet, lives):
        found += rank.between_steps(start_s) + rank.steps(start_s, (0, FOREVER_MS))
    return sorted(found)


def _text(ranks: list[_Rank], between: Lines, start_s: int, window: tuple[int, int]) -> str:
    """Return the lines from a time until before another, ms from the start."""
    found = [line for line in between if window[0] <= line[0] < window[1]]
    for rank in ranks:
        if rank.attempt.begin < window[1] and rank.attempt.end >= window[0]:
            found += rank.steps(start_s, window)
    return "".join(f"{line}\n" for _, line in sorted(found))


def write_gzip(path: Path, texts: Iterable[str]) -> None:
    """Write texts one after the other, compressed: the same bytes for the same texts."""
    with path.open("wb") as file:
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=file, mtime=0)
        with packed:
            for text in texts:
                packed.write(text.encode())


def _reporting(fleet: Fleet, lives: list[Life]) -> list[_Rank]:
    """Return the ranks that report, attempt by attempt."""
    return [
        _Rank(fleet, life, attempt, rank)
        for life in lives
        if life.request.reports
        for attempt in life.attempts
        for rank in range(len(life.run.units) if life.request.reports == "all" else 1)
    ]


@dataclass(frozen=True)
class _Rank:
    """A rank of an attempt, and what it reports."""

    fleet: Fleet
    life: Life
    attempt: Attempt
    rank: int

    @property
    def who(self) -> str:
        """Return the end of each of its lines."""
        request, unit = self.life.request, self.life.run.units[self.rank]
        host = self.fleet.nodes[int(self.fleet.unit_node[unit])].name
        return (
            f'"run_id":"{request.run_id}","attempt":{self.attempt.number},'
            f'"rank":{self.rank},"host":"{host}"}}'
        )

    def between_steps(self, start_s: int) -> Lines:
        """Return what it reports but for its steps."""
        life, attempt, rank, who = self.life, self.attempt, self.rank, self.who

        def line(at: int, event: str, more: str = "") -> tuple[int, str]:
            stamp = f"{start_s + at // SECOND}.{at % SECOND:03}"
            return at, f'{{"v":1,"ts":{stamp},"event":"{event}",{more}{who}'

        uuid = self.fleet.gpu_uuids[int(self.fleet.unit_gpu[life.run.units[rank]])]
        process = (
            f'"pid":{pid(life, rank)},"local_rank":{rank % GPUS_PER_NODE},"gpu_uuid":"{uuid}",'
        )
        plan = f'"planned_steps":{life.planned_steps},' if rank == 0 else ""
        found = [line(attempt.job_start, "job.start", f"{process}{plan}")]
        if life.request.declared and rank == 0:
            declared = json.dumps(life.request.declared, separators=(",", ":"))[1:-1]
            found.append(line(attempt.job_start + 1, "metric", f"{declared},"))
        for name, start, end in attempt.phases:
            length = f'"phase":"{name}","dur_s":{(end - start) / SECOND:.3f},'
            found.append(line(end, "phase", length))
        if rank == 0 and life.habits.is_confirmed:
            found += [line(at, "ckpt.durable", f'"step":{step},') for step, at in attempt.durables]
        if attempt.failure is not None and rank == 0:
            at, kind, text = attempt.failure
            found.append(line(at, "failure", f'"kind":"{kind}","msg":"{text}",'))
        if attempt.outcome == "ok":
            last = max([attempt.work_end, *(end for _, _, end in attempt.phases)])
            found.append(line(min(attempt.end - 1, last + 1_200), "job.end"))
        return found

    def steps(self, start_s: int, window: tuple[int, int]) -> Lines:
        """Return its steps that end from a time until before another, ms from the start."""
        steps, who = self.attempt.steps, self.who
        first, last = np.searchsorted(steps.end, window)
        inside = slice(int(first), int(last))
        waits = [""] * (last - first)
        if self.life.habits.is_measured:
            wait = rank_waits(self.life, self.attempt, self.rank)[inside]
            waits = [
                f'"straggler_s":{w / SECOND:.3f},"comm_s":{c / SECOND:.3f},'
                for w, c in zip(wait.tolist(), steps.comm[inside].tolist(), strict=True)
            ]
        columns = (steps.number, steps.end, steps.end - steps.start, steps.data)
        waits = [a + b for a, b in zip(waits, self._work(steps.number[inside]), strict=True)]
        rows = zip(*(column[inside].tolist() for column in columns), waits, strict=True)
        return [
            (
                at,
                f'{{"v":1,"ts":{start_s + at // 1_000}.{at % 1_000:03},"event":"step",'
                f'"step":{step},"dur_s":{took / 1_000:.3f},"data_s":{data / 1_000:.3f},'
                f"{waited}{who}",
            )
            for step, at, took, data, waited in rows
        ]

    def _work(self, numbers: Ints) -> list[str]:
        """Return what the first rank of some jobs reports of each step: tokens, epoch, loss."""
        options = self.life.request.options
        if self.rank or not options.keys() & {"tokens", "epoch_steps", "loss"}:
            return [""] * len(numbers)
        tokens = f'"tokens":{options["tokens"]:.0f},' if "tokens" in options else ""
        losses = [""] * len(numbers)
        if "loss" in options:
            rng = np.random.default_rng([self.life.request.seed, 20])
            noise = rng.normal(0, LOSS_NOISE, int(self.attempt.steps.number[-1]) + 1)
            values = LOSS_LAST + (LOSS_FIRST - LOSS_LAST) / np.sqrt(numbers) + noise[numbers]
            is_lost = (self.attempt.failure or (0, ""))[1] == "nan"
            last_sound = int(self.attempt.steps.number[-1]) - LOST_STEPS * is_lost
            losses = [
                f'"loss":{value:.4f},' if number <= last_sound else '"loss":"nan",'
                for number, value in zip(numbers.tolist(), values.tolist(), strict=True)
            ]
        epochs = [""] * len(numbers)
        if "epoch_steps" in options:
            epochs = [f'"epoch":{n // options["epoch_steps"]:.0f},' for n in numbers.tolist()]
        return [f"{tokens}{a}{b}" for a, b in zip(losses, epochs, strict=True)]


def pid(life: Life, rank: int) -> int:
    """Return the process id of a rank."""
    return FIRST_PID + life.request.seed % 20_000 + life.run.number * 100 + rank
