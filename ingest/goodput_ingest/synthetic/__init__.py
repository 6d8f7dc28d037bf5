"""A believable GPU fleet from a seed: what its sources would have written, and the truth.

`generate` writes a folder in the formats that sites have: Slurm's texts, an inventory, job events,
kernel log, NCCL Inspector logs, runs of nccl-tests, pages of node_exporter, GPU readings as a bulk
export. It knows nothing of the product's tables; the product reads the folder through its ordinary
ingestors, by `demo.toml`. Truth files (`truth.parquet`, `truth_notes.jsonl`) are for tests and are
not in the recipe. The same arguments give the same bytes.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from goodput_ingest.synthetic.activity import activity_of
from goodput_ingest.synthetic.fleet import Fleet
from goodput_ingest.synthetic.habits import SECOND
from goodput_ingest.synthetic.ledger import notes
from goodput_ingest.synthetic.ledger.truth import true_ledger
from goodput_ingest.synthetic.plans import Plan, eventful
from goodput_ingest.synthetic.world import World, imagine
from goodput_ingest.synthetic.written import (
    accounting,
    events,
    hosts,
    inspector,
    nccl_benchmarks,
    nccl_debug,
)
from goodput_ingest.synthetic.written.telemetry import Telemetry

__all__ = ["generate", "imagine", "telemetry_of", "write_known"]

RECIPE = (
    ("inventory.csv", "inventory"),
    ("sacct.txt", "slurm"),
    ("scontrol_node.txt", "slurm"),
    ("scontrol_job_d.txt", "slurm"),
    ("scontrol_reservation.txt", "slurm"),
    ("sacctmgr_event.psv", "slurm"),
    ("telemetry", "telemetry-parquet"),
    ("node_exporter.prom.gz", "node-exporter"),
    ("job_events", "job-events"),
    ("kernel.log", "kernel-log"),
    ("nccl_inspector", "nccl-inspector"),
    ("nccl_debug", "nccl-debug"),
    ("nccl_tests", "nccl-tests"),
    ("power_feeds.csv", "power-feeds"),
    ("rates.csv", "rates"),
    ("tariffs.csv", "tariffs"),
    ("budgets.csv", "budgets"),
    ("carbon.csv", "carbon"),
)
OF_LOCAL_TIME = ("slurm", "kernel-log", "nccl-tests")
NAMES_ITS_CLUSTER = ("rates", "tariffs", "budgets", "carbon")


def generate(
    folder: Path,
    *,
    gpus: int,
    hours: int,
    seed: int,
    start: datetime,
    interval_s: int = 30,
    telemetry: Literal["parquet", "none"] = "parquet",
    plan: Callable[[Fleet, int, int], Plan] = eventful,
) -> None:
    """Write a fleet of `gpus` GPUs over `hours` hours from `start`, a whole hour with its zone.

    interval_s: between readings of a GPU, dividing an hour. plan: what is to happen. Raises
    ValueError for a fleet that cannot be: no whole nodes, no time, a start that is not a whole
    hour or has no zone.
    """
    world = imagine(
        gpus=gpus, hours=hours, seed=seed, start=start, interval_s=interval_s, plan=plan
    )
    lost = write_known(folder, world, world.total_s, has_telemetry=telemetry == "parquet")
    fleet, schedule, lives, start_s = world.fleet, world.schedule, world.lives, world.start_s
    truth = true_ledger(
        fleet, schedule, lives, world.scrapes, world.total_s * SECOND, start_s * SECOND
    )
    truth.write_parquet(folder / "truth.parquet", compression="zstd", compression_level=3)
    reported = notes.notes(fleet, schedule, lives, world.quiet, start_s) + world.kernels.notes
    reported += notes.of_lost_link(fleet, lost, start_s)
    reported.append(notes.of_slow_node(fleet, start))
    text = "".join(json.dumps(note) + "\n" for note in reported)
    (folder / "truth_notes.jsonl").write_text(text, encoding="utf-8", newline="\n")


def write_known(
    folder: Path, world: World, now_s: int, *, has_telemetry: bool = True
) -> hosts.LostLink | None:
    """Write what all sources have written by `now_s`, and the recipe; return the lost link."""
    folder.mkdir(parents=True, exist_ok=True)
    fleet, start, now_ms = world.fleet, world.start, now_s * SECOND
    schedule, lives = world.known_at(now_s)
    accounting.write(folder, fleet, schedule, lives, start, now_s)
    events.write_job_events(folder / "job_events", fleet, world.lives, world.start_s, now_ms)
    text = "".join(f"{line}\n" for at, line in world.kernels.lines if at <= now_ms)
    (folder / "kernel.log").write_text(text, encoding="utf-8", newline="\n")
    for life in world.lives:
        if life.request.kind == "straggler" and life.end <= now_ms:
            inspector.write(folder / "nccl_inspector", fleet, life, world.start_s)
    nccl_debug.write(folder / "nccl_debug", fleet, world.lives, now_ms)
    nccl_benchmarks.write(folder / "nccl_tests", fleet, start, world.seed)
    has_link = has_telemetry and world.has_faults
    lost = hosts.lost_link(schedule, now_s) if has_link else None
    if has_telemetry:
        hosts.write(
            folder / "node_exporter.prom.gz", fleet, schedule, lost, start, now_s, world.seed
        )
        telemetry_of(world).write(folder / "telemetry", start, now_ms)
    _write_recipe(folder, start + timedelta(seconds=now_s), has_telemetry=has_telemetry)
    return lost


def telemetry_of(world: World) -> Telemetry:
    """Return the exporter of the whole fleet, with counters at their first values."""
    activity = activity_of(world.lives)
    return Telemetry(
        world.fleet, world.schedule, world.scrapes, activity, world.kernels, world.seed
    )


def _write_recipe(folder: Path, end: datetime, *, has_telemetry: bool) -> None:
    lines = ["# How to read this fleet in: path, source, and what the file does not say of itself."]
    for path, source in RECIPE:
        if not (folder / path).exists() or (source == "telemetry-parquet" and not has_telemetry):
            continue
        lines += ["", "[[ingest]]", f'path = "{path}"', f'source = "{source}"']
        if source not in NAMES_ITS_CLUSTER:
            lines.append(f'cluster = "{accounting.CLUSTER}"')
        if source in OF_LOCAL_TIME:
            lines.append('timezone = "UTC"')
            lines.append(f"observed_at = {end.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    text = "\n".join(lines) + "\n"
    (folder / "demo.toml").write_text(text, encoding="utf-8", newline="\n")
