"""A believable GPU fleet from a seed: what its sources would have written, and the truth.

`generate` writes a folder in the formats that sites have: Slurm's texts, an inventory, job events,
kernel log, NCCL Inspector logs, pages of node_exporter, GPU readings as a bulk export. It knows
nothing of the product's tables; the product reads the folder through its ordinary ingestors, by
`demo.toml`. Truth files (`truth.parquet`, `truth_notes.jsonl`) are for tests and are not in the
recipe. The same arguments give the same bytes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from goodput_ingest.synthetic import accounting, events, hosts, inspector, notes
from goodput_ingest.synthetic.activity import activity_of
from goodput_ingest.synthetic.fleet import build
from goodput_ingest.synthetic.habits import SECOND
from goodput_ingest.synthetic.kernels import kernel_logs
from goodput_ingest.synthetic.lives import live
from goodput_ingest.synthetic.outages import period_s
from goodput_ingest.synthetic.plans import Plan, eventful
from goodput_ingest.synthetic.schedule import REPAIR_SHARE, play
from goodput_ingest.synthetic.scrapes import scrapes as read_times
from goodput_ingest.synthetic.telemetry import Telemetry
from goodput_ingest.synthetic.truth import true_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from goodput_ingest.synthetic.fleet import Fleet

__all__ = ["generate"]

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
    ("rates.csv", "rates"),
    ("tariffs.csv", "tariffs"),
    ("budgets.csv", "budgets"),
    ("carbon.csv", "carbon"),
)
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
    if start.tzinfo is None or start.timestamp() % 3_600:
        raise ValueError(f"start {start} is not a whole hour with a zone")
    if hours < 1 or interval_s < 1 or 3_600 % interval_s:
        raise ValueError(f"{hours} h in steps of {interval_s} s cannot be generated")
    folder.mkdir(parents=True, exist_ok=True)
    total_s, start_s = hours * 3_600, int(start.timestamp())
    fleet = build(gpus, seed)
    day = plan(fleet, hours, seed)
    repair_s = int(REPAIR_SHARE * period_s(hours))
    schedule = play(fleet, day.requests, day.outages, total_s, repair_s, seed)
    lives = live(schedule.runs, total_s)
    scrapes = read_times(fleet, schedule, day.silences, total_s, interval_s, seed)

    accounting.write(folder, fleet, schedule, lives, start, total_s)
    events.write_job_events(folder / "job_events", fleet, lives, start_s, total_s * SECOND)
    noise = max(1, len(fleet.nodes) // 16) if day.has_faults else 0
    said = kernel_logs(fleet, schedule, lives, start, total_s * SECOND, seed, noise)
    text = "".join(f"{line}\n" for line in said.lines)
    (folder / "kernel.log").write_text(text, encoding="utf-8", newline="\n")
    for life in lives:
        if life.request.kind == "straggler":
            inspector.write(folder / "nccl_inspector", fleet, life, start_s)
    has_link = telemetry == "parquet" and day.has_faults
    lost = hosts.lost_link(schedule, total_s) if has_link else None
    if telemetry == "parquet":
        hosts.write(folder / "node_exporter.prom.gz", fleet, schedule, lost, start, total_s, seed)
        sampled = Telemetry(fleet, schedule, scrapes, activity_of(lives), said.corrected, seed)
        sampled.write(folder / "telemetry", start, total_s * SECOND)
    truth = true_ledger(fleet, schedule, lives, scrapes, total_s * SECOND, start_s * SECOND)
    truth.write_parquet(folder / "truth.parquet", compression="zstd", compression_level=3)
    reported = notes.notes(fleet, schedule, lives, day.silences, start_s) + said.notes
    reported += notes.of_lost_link(fleet, lost, start_s)
    text = "".join(json.dumps(note) + "\n" for note in reported)
    (folder / "truth_notes.jsonl").write_text(text, encoding="utf-8", newline="\n")
    _write_recipe(folder, start + timedelta(hours=hours), has_telemetry=telemetry == "parquet")


def _write_recipe(folder: Path, end: datetime, *, has_telemetry: bool) -> None:
    lines = ["# How to read this fleet in: path, source, and what the file does not say of itself."]
    for path, source in RECIPE:
        if not (folder / path).exists() or (source == "telemetry-parquet" and not has_telemetry):
            continue
        lines += ["", "[[ingest]]", f'path = "{path}"', f'source = "{source}"']
        if source not in NAMES_ITS_CLUSTER:
            lines.append(f'cluster = "{accounting.CLUSTER}"')
        if source in ("slurm", "kernel-log"):
            lines.append('timezone = "UTC"')
            lines.append(f"observed_at = {end.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    text = "\n".join(lines) + "\n"
    (folder / "demo.toml").write_text(text, encoding="utf-8", newline="\n")
