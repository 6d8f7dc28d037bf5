"""A believable GPU fleet from a seed: what its sources would have written.

`imagine` plays a fleet through; `write_known` writes it into a folder in formats that sites have:
Slurm's texts, an inventory, job events, kernel log, NCCL Inspector logs, runs of nccl-tests, pages
of node_exporter, GPU readings as a bulk export. It knows nothing of the product's tables; the
product reads the folder through its ordinary ingestors, by `demo.toml`. The same arguments give the
same bytes.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from goodput_synthetic.fleet.activity import activity_of
from goodput_synthetic.fleet.exhibits import STRAY
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.schedule import Schedule
from goodput_synthetic.fleet.world import World, imagine
from goodput_synthetic.fleet.written import (
    accounting,
    events,
    flight_recorder,
    hosts,
    inspector,
    nccl_benchmarks,
    nccl_debug,
    node_checks,
    operation_trace,
    pods,
)
from goodput_synthetic.fleet.written.telemetry import Telemetry

__all__ = ["imagine", "telemetry_of", "write_known"]

RECIPE = (
    ("inventory.csv", "inventory"),
    ("sacct.txt", "slurm"),
    ("scontrol_node.txt", "slurm"),
    ("scontrol_job_d.txt", "slurm"),
    ("scontrol_reservation.txt", "slurm"),
    ("sacctmgr_event.psv", "slurm"),
    ("pods.json", "kubernetes"),
    ("telemetry", "telemetry-parquet"),
    ("node_exporter.prom.gz", "node-exporter"),
    ("job_events", "job-events"),
    ("kernel.log", "kernel-log"),
    ("nccl_inspector", "nccl-inspector"),
    ("nccl_debug", "nccl-debug"),
    ("nccl_tests", "nccl-tests"),
    ("flight_recorder", "flight-recorder"),
    ("operation_trace", "operation-trace"),
    ("snapshots.jsonl", "node-snapshot"),
    ("node_tests.csv", "node-tests"),
    ("power_feeds.csv", "power-feeds"),
    ("rates.csv", "rates"),
    ("tariffs.csv", "tariffs"),
    ("budgets.csv", "budgets"),
    ("carbon.csv", "carbon"),
)
OF_LOCAL_TIME = ("slurm", "kernel-log", "nccl-tests")
NAMES_ITS_CLUSTER = ("rates", "tariffs", "budgets", "carbon")
NAME_A_CLUSTER = (".csv", ".psv", ".txt")


def write_known(
    folder: Path, world: World, now_s: int, cluster: str = accounting.CLUSTER,
    scheduler: str = "slurm",
) -> None:  # fmt: skip
    """Write what all sources have written by `now_s`, and the recipe.

    scheduler: whose files the recipe has: slurm, kubernetes (pods alone), or of none
    """
    folder.mkdir(parents=True, exist_ok=True)
    fleet, start, now_ms = world.fleet, world.start, now_s * SECOND
    schedule, lives = world.known_at(now_s)
    listed = Schedule([r for r in schedule.runs if r.request.kind != STRAY], schedule.outages)
    accounting.write(folder, fleet, listed, lives, start, now_s)
    events.write_job_events(folder / "job_events", fleet, world.lives, world.start_s, now_ms)
    text = "".join(f"{line}\n" for at, line in world.kernels.lines if at <= now_ms)
    (folder / "kernel.log").write_text(text, encoding="utf-8", newline="\n")
    for life in world.lives:
        if life.request.kind == "straggler" and life.end <= now_ms:
            inspector.write(folder / "nccl_inspector", fleet, life, world.start_s)
    is_tuning = world.is_shown
    nccl_debug.write(folder / "nccl_debug", fleet, world.lives, now_ms, is_tuning=is_tuning)
    nccl_benchmarks.write(folder / "nccl_tests", fleet, start, world.seed)
    link = hosts.lost_link(schedule, now_s) if world.has_faults else None
    lost = ([] if link is None else [link]) + _write_shown(folder, world, now_s)
    hosts.write(
        folder / "node_exporter.prom.gz", fleet, schedule, lost, start, now_s, world.seed,
        has_errors=world.is_shown,
    )  # fmt: skip
    telemetry_of(world).write(folder / "telemetry", start, now_ms)
    if scheduler == "kubernetes":
        pods.write(folder / "pods.json", fleet, listed, start)
    for path in folder.iterdir():
        if cluster != accounting.CLUSTER and path.suffix in NAME_A_CLUSTER:
            text = path.read_text("utf-8").replace(accounting.CLUSTER, cluster)
            path.write_text(text, "utf-8", newline="\n")
    _write_recipe(folder, start + timedelta(seconds=now_s), cluster, scheduler)


def _write_shown(folder: Path, world: World, now_s: int) -> list[hosts.LostLink]:
    """Write what a site has only where somebody set it up; return links that are lost as well."""
    if not world.is_shown:
        return []
    fleet, lives = world.fleet, world.lives
    nccl_benchmarks.write_pairs(folder / "nccl_tests", fleet, world.start, world.seed)
    dumps = folder / "flight_recorder"
    flight_recorder.write(dumps, lives, world.start_s, now_s * SECOND)
    operation_trace.write(folder / "operation_trace", lives, world.seed)
    snapshots = folder / "snapshots.jsonl"
    node_checks.write_snapshots(snapshots, fleet, lives, world.start_s, now_s)
    node_checks.write_tests(folder / "node_tests.csv", fleet, lives, world.start)
    return hosts.lost_by_switch(fleet, now_s)


def telemetry_of(world: World) -> Telemetry:
    """Return the exporter of the whole fleet, with counters at their first values."""
    activity = activity_of(world.lives)
    return Telemetry(
        world.fleet, world.schedule, world.scrapes, activity, world.kernels, world.seed,
        has_error_counters=world.is_shown,
    )  # fmt: skip


def _write_recipe(folder: Path, end: datetime, cluster: str, scheduler: str) -> None:
    lines = ["# How to read this fleet in: path, source, and what the file does not say of itself."]
    for path, source in RECIPE:
        if not (folder / path).exists() or (source == "slurm" and scheduler != source):
            continue
        lines += ["", "[[ingest]]", f'path = "{path}"', f'source = "{source}"']
        if source not in NAMES_ITS_CLUSTER:
            lines.append(f'cluster = "{cluster}"')
        if source in OF_LOCAL_TIME:
            lines.append('timezone = "UTC"')
            lines.append(f"observed_at = {end.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    text = "\n".join(lines) + "\n"
    (folder / "demo.toml").write_text(text, encoding="utf-8", newline="\n")
