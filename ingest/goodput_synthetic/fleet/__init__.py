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
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.world import World, imagine
from goodput_synthetic.fleet.written import (
    accounting,
    events,
    hosts,
    inspector,
    nccl_benchmarks,
    nccl_debug,
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
    accounting.write(folder, fleet, schedule, lives, start, now_s)
    events.write_job_events(folder / "job_events", fleet, world.lives, world.start_s, now_ms)
    text = "".join(f"{line}\n" for at, line in world.kernels.lines if at <= now_ms)
    (folder / "kernel.log").write_text(text, encoding="utf-8", newline="\n")
    for life in world.lives:
        if life.request.kind == "straggler" and life.end <= now_ms:
            inspector.write(folder / "nccl_inspector", fleet, life, world.start_s)
    nccl_debug.write(folder / "nccl_debug", fleet, world.lives, now_ms)
    nccl_benchmarks.write(folder / "nccl_tests", fleet, start, world.seed)
    lost = hosts.lost_link(schedule, now_s) if world.has_faults else None
    hosts.write(folder / "node_exporter.prom.gz", fleet, schedule, lost, start, now_s, world.seed)
    telemetry_of(world).write(folder / "telemetry", start, now_ms)
    if scheduler == "kubernetes":
        pods.write(folder / "pods.json", fleet, schedule, start)
    for path in folder.iterdir():
        if cluster != accounting.CLUSTER and path.suffix in NAME_A_CLUSTER:
            text = path.read_text("utf-8").replace(accounting.CLUSTER, cluster)
            path.write_text(text, "utf-8", newline="\n")
    _write_recipe(folder, start + timedelta(seconds=now_s), cluster, scheduler)


def telemetry_of(world: World) -> Telemetry:
    """Return the exporter of the whole fleet, with counters at their first values."""
    activity = activity_of(world.lives)
    return Telemetry(
        world.fleet, world.schedule, world.scrapes, activity, world.kernels, world.seed
    )


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
