"""A made-up fleet in a folder as its sources wrote it, with the truth of what happened."""

import json
from collections.abc import Callable, Container
from datetime import datetime
from pathlib import Path

from tests.fleets import notes
from tests.fleets.true_ledger import true_ledger

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_ingest.synthetic import imagine, write_known
from goodput_ingest.synthetic.fleet import Fleet
from goodput_ingest.synthetic.habits import SECOND
from goodput_ingest.synthetic.plans import Plan, eventful
from goodput_ingest.synthetic.written.hosts import lost_link
from goodput_queries.database import LocalStore


def generate(
    folder: Path,
    *,
    gpus: int,
    hours: int,
    seed: int,
    start: datetime,
    interval_s: int = 30,
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
    write_known(folder, world, world.total_s)
    fleet, schedule, lives, start_s = world.fleet, world.schedule, world.lives, world.start_s
    truth = true_ledger(
        fleet, schedule, lives, world.scrapes, world.total_s * SECOND, start_s * SECOND
    )
    truth.write_parquet(folder / "truth.parquet", compression="zstd", compression_level=3)
    reported = notes.notes(fleet, schedule, lives, world.quiet, start_s) + world.kernels.notes
    lost = lost_link(schedule, world.total_s) if world.has_faults else None
    reported += notes.of_lost_link(fleet, lost, start_s)
    reported.append(notes.of_slow_node(fleet, start))
    text = "".join(json.dumps(note) + "\n" for note in reported)
    (folder / "truth_notes.jsonl").write_text(text, encoding="utf-8", newline="\n")


def read_in(store: LocalStore, folder: Path, *, without: Container[str] = ()) -> None:
    """Read the files of a fleet, made up or recorded, but those of the sources named."""
    for step in recipe(folder):
        if step.source not in without:
            ingest(store, step.source, [step.path], step.options)
