"""The jobs' events: job events v1, as a log collector keeps them."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from goodput_ingest.synthetic.fleet import GPUS_PER_NODE, Fleet
from goodput_ingest.synthetic.habits import SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_ingest.synthetic.lives import Life
    from goodput_ingest.synthetic.training import Attempt

HOURS_PER_FILE = 6
FIRST_PID = 4_000
Lines = list[tuple[int, str]]


def write_job_events(
    folder: Path, fleet: Fleet, lives: list[Life], start_s: int, total_ms: int
) -> None:
    """Write the events of all jobs that send any, six hours a file, in order of time."""
    folder.mkdir(parents=True, exist_ok=True)
    said = [line for line in job_events(fleet, lives, start_s) if line[0] <= total_ms]
    width = HOURS_PER_FILE * 3_600 * SECOND
    number = 0
    for begin in range(0, total_ms, width):
        until = number
        while until < len(said) and (said[until][0] < begin + width or begin + width >= total_ms):
            until += 1
        if until > number:
            when = datetime.fromtimestamp(start_s + begin // SECOND, UTC)
            text = "\n".join(line for _, line in said[number:until]) + "\n"
            write_gzip(folder / f"events-{when:%Y%m%dT%H}.jsonl.gz", text)
        number = until


def job_events(fleet: Fleet, lives: list[Life], start_s: int) -> Lines:
    """Return the events of all jobs that send any: (ms from the start, the line), by time."""
    said: Lines = []
    for life in lives:
        if life.request.reports:
            for attempt in life.attempts:
                said += _attempt(fleet, life, attempt, start_s)
    return sorted(said)


def write_gzip(path: Path, text: str) -> None:
    """Write text compressed, the same bytes for the same text."""
    with path.open("wb") as file:
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=file, mtime=0)
        with packed:
            packed.write(text.encode())


def _attempt(fleet: Fleet, life: Life, attempt: Attempt, start_s: int) -> Lines:
    run = life.run
    ranks = range(len(run.units)) if life.request.reports == "all" else range(1)
    said: Lines = []
    for rank in ranks:
        unit = run.units[rank]
        host = fleet.nodes[int(fleet.unit_node[unit])].name
        who = (
            f'"run_id":"{life.request.run_id}","attempt":{attempt.number},'
            f'"rank":{rank},"host":"{host}"}}'
        )
        said += _of_rank(fleet, life, attempt, rank, who, start_s)
    return said


def _of_rank(
    fleet: Fleet, life: Life, attempt: Attempt, rank: int, who: str, start_s: int
) -> Lines:
    def stamp(at: int) -> str:
        return f"{start_s + at // SECOND}.{at % SECOND:03}"

    def line(at: int, event: str, more: str = "") -> tuple[int, str]:
        return at, f'{{"v":1,"ts":{stamp(at)},"event":"{event}",{more}{who}'

    unit = life.run.units[rank]
    uuid = fleet.gpu_uuids[int(fleet.unit_gpu[unit])]
    process = f'"pid":{pid(life, rank)},"local_rank":{rank % GPUS_PER_NODE},"gpu_uuid":"{uuid}",'
    said = [line(attempt.job_start, "job.start", process)]
    for name, start, end in attempt.phases:
        length = f'"phase":"{name}","dur_s":{(end - start) / SECOND:.3f},'
        said.append(line(end, "phase", length))
    if rank == 0 and life.habits.is_confirmed:
        said += [line(at, "ckpt.durable", f'"step":{step},') for step, at in attempt.durables]
    said += _steps(life, attempt, who, start_s)
    if attempt.failure is not None and rank == 0:
        at, kind, text = attempt.failure
        said.append(line(at, "failure", f'"kind":"{kind}","msg":"{text}",'))
    if attempt.outcome == "ok":
        last = max([attempt.work_end, *(end for _, _, end in attempt.phases)])
        said.append(line(min(attempt.end - 1, last + 1_200), "job.end"))
    return said


def _steps(life: Life, attempt: Attempt, who: str, start_s: int) -> Lines:
    steps = attempt.steps
    length = steps.end - steps.start
    waits = [""] * len(steps)
    if life.habits.is_measured:
        waits = [
            f'"straggler_s":{w / SECOND:.3f},"comm_s":{c / SECOND:.3f},'
            for w, c in zip(steps.wait.tolist(), steps.comm.tolist(), strict=True)
        ]
    rows = zip(
        steps.number.tolist(), steps.end.tolist(), length.tolist(), steps.data.tolist(), waits,
        strict=True,
    )  # fmt: skip
    return [
        (
            at,
            f'{{"v":1,"ts":{start_s + at // 1_000}.{at % 1_000:03},"event":"step","step":{step},'
            f'"dur_s":{took / 1_000:.3f},"data_s":{data / 1_000:.3f},{wait}{who}',
        )
        for step, at, took, data, wait in rows
    ]


def pid(life: Life, rank: int) -> int:
    """Return the process id of a rank."""
    return FIRST_PID + life.request.seed % 20_000 + life.run.number * 100 + rank
