"""A fleet made, read into a file, what a reading takes up there, and the ledger built from it."""

import contextlib
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl
from tests.benchmarks import bench_live, formats, telemetry_stage
from tests.benchmarks.format_files import WIDE
from tests.benchmarks.meter import Meter
from tests.benchmarks.table import Other, Row, memory, number
from tests.fleets.generate import read_in
from tests.fleets.plans import with_steps

from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_synthetic.fleet import imagine, write_known

START = datetime(2026, 11, 16, tzinfo=UTC)
SEED = 7
INTERVAL_S = 30  # between readings of a GPU
BUDGET_GPUS, BUDGET_HOURS = 10_000, 24  # of the budgets that name no rate
BUILD_YARDSTICKS, BUILD_BYTES = 22.0, 2.5e9  # with steps of 60 s
STORED_BYTES, PARQUET_BYTES = 25.0, 20.0
GROWTH_MOST = 1.2
LINEAR = "within 20 % of linear from 1,000 to 10,000 GPUs"
YARDSTICK_STEPS = "60"
STEPS = {"2": 1.3, "0.6": 1.6}  # most CPU seconds of the full ledger, as multiples of that of 60 s
SMALL_SHARE, GPUS_MIN, GPUS_OF_NODE = 10, 64, 8


@dataclass(frozen=True)
class Fleet:
    """A generated fleet in a folder of the benchmark's, and the database it is read into.

    steps: seconds of each.
    """

    folder: Path
    gpus: int
    hours: int
    steps: str = YARDSTICK_STEPS

    @property
    def files(self):
        """Return the folder of its sources."""
        return self.folder / "files"

    @property
    def database(self):
        """Return the file it is read into."""
        return self.folder / "fleet.duckdb"

    @property
    def name(self):
        """Return how rows of the table call it."""
        name = f"{self.gpus:,} GPUs x {self.hours} h"
        return name if self.steps == YARDSTICK_STEPS else f"{name}, steps of {self.steps} s"

    @property
    def is_of_budget(self):
        """Say whether it is the fleet that budgets are for."""
        return (self.gpus, self.hours) == (BUDGET_GPUS, BUDGET_HOURS)

    @property
    def smaller(self):
        """Return a fleet of a tenth of its GPUs, as far as one can be."""
        gpus = self.gpus // SMALL_SHARE // GPUS_OF_NODE * GPUS_OF_NODE
        return replace(self, folder=self.folder / "smaller", gpus=max(GPUS_MIN, gpus))

    def samples(self):
        """Return how many readings were written."""
        counted = pl.scan_parquet(self.files / "telemetry" / "*.parquet").select(pl.len())
        return int(counted.collect().item())


def make(fleet, run):
    """Write the fleet's sources."""
    cost = run(generate_files, fleet)
    size = sum(file.stat().st_size for file in fleet.files.rglob("*") if file.is_file())
    rate = number(fleet.samples() / cost.wall_s / 1e6)
    return Row(
        f"generate the fleet, {fleet.name}, {number(size / 1e6)} MB",
        f"{rate} M readings/s, {memory(cost.peak_bytes)}",
        cost,
    )


def read(fleet, repeats, run):
    """Read it into its database, readings first: of them alone the file's size is taken."""
    telemetry = fleet.files / "telemetry"
    samples = fleet.samples()
    yield formats.measure(WIDE, telemetry, fleet.database, samples, repeats, run)
    yield from _storage(fleet, samples, run)
    run(read_sources, fleet, {WIDE.source})


def read_quietly(fleet, run):
    """Write and read it without rows of the table."""
    run(generate_files, fleet)
    run(read_sources, fleet, set())


def build(fleet, yardstick_s, run):
    """Build the whole ledger from raw, and compare the telemetry stage with the alternatives.

    Returns the cost of the ledger.
    """
    cost, counts = run(build_all, fleet)
    yardsticks = cost.wall_s / yardstick_s
    is_met = yardsticks <= BUILD_YARDSTICKS and (cost.peak_bytes or 0) <= BUILD_BYTES
    samples = counts["raw.gpu_samples"]
    yield Row(
        f"full ledger, {fleet.name}: {number(samples / 1e6)} M readings, "
        f"{counts['raw.job_runs']:,} job runs, {counts['intermediate.int_holds']:,} holds",
        f"{number(cost.wall_s)} s = {number(yardsticks)} yardsticks, {memory(cost.peak_bytes)}",
        cost,
        f"<= {BUILD_YARDSTICKS:.0f} yardsticks, <= {BUILD_BYTES / 1e9:.1f} GB",
        is_met if fleet.is_of_budget else None,
    )
    yield _telemetry_stage(fleet, run)
    yield _growth(fleet, cost, samples, run)
    return cost


def build_other_steps(fleet, of_yardstick, steps, slices, yardstick_s, run):
    """Return the rows of the full ledger and the next five minutes at other lengths of steps.

    of_yardstick: the full ledger with steps of 60 s. slices: of five minutes; 0: not measured.
    The ratio is that of CPU seconds: other work on the machine changes it less between two builds.
    """
    for length in steps:
        other = replace(fleet, folder=fleet.folder / f"steps-{length}", steps=length)
        read_quietly(other, run)
        cost, counts = run(build_all, other)
        ratio = cost.cpu_s / of_yardstick.cpu_s
        yield Row(
            f"full ledger, {other.name}: {counts['raw.job_events']:,} job events",
            f"CPU {number(ratio)} x that of steps of {YARDSTICK_STEPS} s, "
            f"{memory(cost.peak_bytes)}",
            cost,
            f"<= {STEPS[length]} x that of steps of {YARDSTICK_STEPS} s",
            ratio <= STEPS[length] if other.is_of_budget else None,
        )
        if slices:
            yield bench_live.measure(other, slices, yardstick_s, run)
        shutil.rmtree(other.folder)


def generate_files(fleet):
    """Write the fleet's sources, without the truth of each step and GPU; return what that took."""
    plan = partial(with_steps, int(float(fleet.steps) * 1000))
    with Meter() as meter:
        world = imagine(
            gpus=fleet.gpus, hours=fleet.hours, seed=SEED, start=START, interval_s=INTERVAL_S,
            plan=plan,
        )  # fmt: skip
        write_known(fleet.files, world, world.total_s)
    return meter.cost


def read_sources(fleet, known):
    """Read the fleet's sources but those that its database has."""
    with contextlib.closing(LocalStore(fleet.database)) as store:
        read_in(store, fleet.files, without=known)


def build_all(fleet):
    """Build everything; return the cost and rows of tables. The checks must find nothing."""
    with contextlib.closing(LocalStore(fleet.database)) as store:
        with Meter() as meter:
            store.build(is_full=True)
        tables = ("raw.gpu_samples", "raw.job_runs", "raw.job_events", "intermediate.int_holds")
        counts = {t: int(store.read(f"select count(*) from {t}").item()) for t in tables}
        wrong = check(store).filter(pl.col("violations") > 0)
        if not wrong.is_empty():
            raise SystemExit(f"the ledger of {fleet.name} is not clean: {wrong.to_dicts()}")
    return meter.cost, counts


def _telemetry_stage(fleet, run):
    """Run the stage by both tools; raises SystemExit where they do not agree to the millisecond."""
    margin_ms = run(telemetry_stage.export, fleet.database, fleet.folder)
    mine = fleet.folder / "ours.parquet"
    cost = run(telemetry_stage.ours, fleet.database, mine, margin_ms)
    theirs, name = fleet.folder / "chdb.parquet", "ClickHouse (chdb)"
    try:
        other = Other(name, run(telemetry_stage.chdb, fleet.folder, theirs, margin_ms))
    except (ImportError, MemoryError) as error:
        why = "not installed" if isinstance(error, ImportError) else "out of memory"
        other = Other(name, None, why)
    else:
        if difference := telemetry_stage.difference(mine, theirs):
            raise SystemExit(f"{name} comes to another ledger: {difference}")
    cells = telemetry_stage.cells(mine)
    return Row(
        f"its telemetry stage, to {cells:,} hours of holds, all equal to the ms",
        f"{number(cost.wall_s)} s, {memory(cost.peak_bytes)}", cost, others=[other],
    )  # fmt: skip


def _growth(fleet, cost, samples, run):
    """Compare the time a reading of the full ledger with that in a tenth of the fleet."""
    small = fleet.smaller
    read_quietly(small, run)
    small_cost, counts = run(build_all, small)
    times = counts["raw.gpu_samples"] / samples
    wall, cpu = cost.wall_s / small_cost.wall_s * times, cost.cpu_s / small_cost.cpu_s * times
    return Row(
        f"growth of the full ledger, {small.gpus:,} to {fleet.gpus:,} GPUs",
        f"a reading takes {number(wall)} x the time (CPU {number(cpu)} x); "
        f"{small.gpus:,} GPUs took {number(small_cost.wall_s)} s (CPU {number(small_cost.cpu_s)})",
        budget=LINEAR,
        is_met=wall <= GROWTH_MOST if fleet.is_of_budget else None,
    )


def _storage(fleet, samples, run):
    """Take the bytes a reading, in the file and written out as Parquet."""
    on_disk, used, parquet = run(_sizes, fleet, samples)
    is_judged = samples >= WIDE.full  # blocks of the file weigh in smaller ones
    yield Row(
        "storage of a reading, native",
        f"{on_disk:.1f} bytes of the file, {used:.1f} of its blocks in use",
        budget=f"<= {STORED_BYTES:.0f} bytes",
        is_met=on_disk <= STORED_BYTES if is_judged else None,
    )
    yield Row(
        "storage of a reading, Parquet (zstd)",
        f"{parquet:.1f} bytes",
        budget=f"<= {PARQUET_BYTES:.0f} bytes",
        is_met=parquet <= PARQUET_BYTES if is_judged else None,
    )


def _sizes(fleet, samples):
    """Return the bytes a reading of the file, of its blocks in use, and of its Parquet.

    The file has the readings of the wide export alone, their rarer counters included.
    """
    parquet = fleet.folder / "samples.parquet"
    with contextlib.closing(LocalStore(fleet.database)) as store, store.cursor() as cursor:
        blocks = cursor.sql("select used_blocks * block_size from pragma_database_size()")
        used = blocks.fetchall()[0][0]
        compressed = "format parquet, compression zstd"
        cursor.execute(f"copy (from raw.gpu_samples) to '{parquet}' ({compressed})")
    sizes = fleet.database.stat().st_size, used, parquet.stat().st_size
    on_disk, in_use, written = (size / samples for size in sizes)
    return on_disk, in_use, written
