"""A made-up fleet in a folder as its sources wrote it, with the truth of what happened."""

import json
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path

from tests.fleets.notes import notes
from tests.fleets.true_ledger import true_ledger

from goodput_ingest.run.ingest import ingest
from goodput_queries.database import LocalStore
from goodput_synthetic.demo import recipe
from goodput_synthetic.fleet import imagine, write_known
from goodput_synthetic.fleet.fleet import Fleet
from goodput_synthetic.fleet.plans import Plan, eventful


def generate(
    folder: Path,
    *,
    gpus: int,
    hours: int,
    seed: int,
    start: datetime,
    interval_s: int = 30,
    plan: Callable[[Fleet, int, int], Plan] = eventful,
    **of: str,
) -> None:
    """Write a fleet of `gpus` GPUs over `hours` hours from `start`, a whole hour with its zone.

    interval_s: between readings of a GPU, dividing an hour. plan: what is to happen; of: cluster
    and scheduler. Raises ValueError for a fleet that cannot be: no whole nodes, no time, a start
    that is not a whole hour or has no zone.
    """
    world = imagine(
        gpus=gpus, hours=hours, seed=seed, start=start, interval_s=interval_s, plan=plan
    )
    write_known(folder, world, world.total_s, **of)
    truth = true_ledger(world)
    truth.write_parquet(folder / "truth.parquet", compression="zstd", compression_level=3)
    text = "".join(json.dumps(note) + "\n" for note in notes(world))
    (folder / "truth_notes.jsonl").write_text(text, encoding="utf-8", newline="\n")


def read_in(store: LocalStore, folder: Path, *, without: Container[str] = ()) -> None:
    """Read the files of a fleet, made up or recorded, but those of the sources named."""
    for step in recipe(folder):
        if step.source not in without:
            ingest(store, step.source, [step.path], step.options)


def beside_recorded(filled, recorded, folders):
    """Return a database of the recorded session and twelve hours of 64 GPUs, to be copied."""

    def fill(store):
        folder, start = folders.mktemp("fleet"), datetime(2026, 11, 20, tzinfo=UTC)
        generate(folder, gpus=64, hours=12, seed=7, start=start)
        read_in(store, folder)
        store.build()

    return filled("beside-recorded", fill, copy_of=recorded)
