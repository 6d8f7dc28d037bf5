"""The weeks before the demo's days: worlds on the demo's fleet, and what a site still has of them.

Of each week all evidence is made and built. What is written is what is left once its readings were
dropped by age: records of the scheduler, and the archived hours of the ledger and of energy.
"""

import contextlib
import gzip
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tests.fleets import plans

from goodput_ingest.run.ingest import ingest
from goodput_queries.database import LocalStore
from goodput_synthetic import demo
from goodput_synthetic import fleet as synthetic
from goodput_synthetic.fleet.fleet import Fleet
from goodput_synthetic.fleet.plans import Plan
from goodput_synthetic.fleet.world import World

PLANS: Final = (plans.eventful, plans.better, plans.eventful, plans.worse, plans.eventful)
WEEK_HOURS = 168
INTERVAL_S = 60  # between readings: they make the hours, and are not kept
JOB_IDS = 200_000  # of a week
KEPT: Final = (
    *("inventory.csv", "sacct.txt", "scontrol_reservation.txt", "sacctmgr_event.psv"),
    "carbon.csv",
)
ARCHIVED: Final = {
    "ledger": """from marts.ledger_hourly where hour_ms < $1
        order by node, hour_ms, job_run_key, attempt_key, category, phase, gpu_uuid,
            gpu_instance""",
    "energy": """from marts.statement_energy_hourly where hour_ms < $1
        order by job_run_key, availability, hour_ms, gpu_model, mig_profile""",
}


def week(number: int, *, gpus: int, hours: int, end: datetime) -> World:
    """Return a week of the fleet, 0 the first; `end` is that of the last. No job outlives it."""
    plan = PLANS[number]

    def numbered(fleet: Fleet, hours: int, seed: int) -> Plan:
        made = plan(fleet, hours, seed + 100 * (number + 1))
        for request in made.requests:
            is_own = request.run_id == str(request.job_id)
            request.job_id += JOB_IDS * (number + 1)
            request.run_id = str(request.job_id) if is_own else f"{request.run_id}-w{number + 1}"
        return made

    world = synthetic.imagine(
        gpus=gpus, hours=hours, seed=demo.FLEET_SEED, interval_s=INTERVAL_S, plan=numbered,
        start=end - timedelta(hours=hours * (len(PLANS) - number)))  # fmt: skip
    for run in world.schedule.runs:
        if run.end_s is None:
            run.state, run.end_s = "CANCELLED", world.total_s
    for outage in world.schedule.outages:
        outage.end_s = outage.end_s or world.total_s
    return world


def write(folder: Path, world: World, empty: Path | None = None) -> None:
    """Write what is left of a week into a folder; the same week gives the same bytes.

    empty: a database file without rows to begin with, which saves making one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        synthetic.write_known(files, world, world.total_s)
        database = Path(scratch) / "week.duckdb"
        if empty is not None:
            shutil.copyfile(empty, database)
        with contextlib.closing(LocalStore(database)) as store:
            for step in demo.recipe(files):
                ingest(store, step.source, [step.path], step.options)
            store.build()
            for name, sql in ARCHIVED.items():
                rows = store.read(sql, [(world.start_s + world.total_s) * 1000])
                rows.write_parquet(
                    folder / f"{name}.parquet", compression="zstd", compression_level=19
                )
        for name in KEPT:
            packed = gzip.compress((files / name).read_bytes(), mtime=0)
            (folder / f"{name}.gz").write_bytes(packed)
        recipe = (files / "demo.toml").read_text(encoding="utf-8")
    head, *parts = recipe.split("\n[[ingest]]\n")
    kept = [part.replace(f'"{name}"', f'"{name}.gz"') for part in parts for name in KEPT
            if f'path = "{name}"' in part]  # fmt: skip
    text = "\n[[ingest]]\n".join([head, *kept])
    (folder / "demo.toml").write_text(text, encoding="utf-8", newline="\n")
