"""A fleet in a lake: its ledger by this process and by Ray, beside one database and Daft."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import polars as pl
from tests.benchmarks import telemetry_stage, telemetry_stage_daft
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import Other, Row, memory, number

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_queries.catalog import models
from goodput_queries.errors import StoreError
from goodput_queries.ledger_build import dirty, watermarks
from goodput_queries.ledger_build.node_hours import NodeHours
from goodput_queries.ledger_build.parts.distribute import LEDGER, Parts, reads_readings
from goodput_queries.ledger_build.parts.engines import InProcess
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.benchmarks.bench_fleet import Fleet

GPUS_OF_A_BUCKET = 782  # a day of it is a pass
SPEED_UP = 1.7


def measure(fleet: Fleet, run: Callable[..., Any]) -> Iterator[Row]:
    """Load a fleet into a lake and build it: here, with one worker of Ray and with two."""
    yield _load(fleet, run)
    single = run(_build, fleet, "local", 1)
    yield Row(
        f"full ledger of a lake, {fleet.name}, one process",
        f"{number(single[0].wall_s)} s, {memory(single[0].peak_bytes)}",
        single[0],
    )
    found = []
    for workers in (1, 2):
        try:
            found.append(run(_build, fleet, "ray", workers))
        except StoreError as error:  # the package is not installed
            yield Row("heavy stages on two workers of Ray", str(error))
            return
    one, two = (heavy_s for _, heavy_s in found)
    yield Row(
        "heavy stages on two workers of Ray instead of one",
        f"{number(one / two)} x: {number(one)} s and {number(two)} s; "
        f"{number(single[1])} s in one process",
        found[1][0],
        f">= {SPEED_UP} x",
        one / two >= SPEED_UP,
    )
    yield _telemetry_stage(fleet, run)


def _load(fleet: Fleet, run: Callable[..., Any]) -> Row:
    cost = run(_write, fleet)
    samples = fleet.samples()
    size = sum(file.stat().st_size for file in _url(fleet).rglob("*.parquet"))
    return Row(
        "load a fleet into a lake",
        f"{number(samples / cost.wall_s / 1e6)} M readings/s, {size / samples:.1f} bytes a reading",
        cost,
    )


def _telemetry_stage(fleet: Fleet, run: Callable[..., Any]) -> Row:
    """Run the stage by both; raises SystemExit where they do not agree to the millisecond."""
    margin_ms = run(telemetry_stage.export, fleet.database, fleet.folder)
    mine, theirs = fleet.folder / "lake.parquet", fleet.folder / "daft.parquet"
    cost = run(_stage, fleet, mine)
    try:
        work = telemetry_stage_daft.daft
        other = Other("Daft", run(work, str(_url(fleet)), fleet.folder, theirs, margin_ms))
        if difference := telemetry_stage.difference(mine, theirs):
            raise SystemExit(f"Daft comes to another ledger: {difference}")
    except ImportError:
        other = Other("Daft", None, "not installed")
    except MemoryError:
        other = Other("Daft", None, "out of memory")
    return Row(
        "telemetry stage of a lake, equal to the ms",
        f"{number(cost.wall_s)} s, {memory(cost.peak_bytes)}",
        cost,
        others=[other],
    )


def _url(fleet: Fleet) -> Path:
    return fleet.folder / "lake"


def _write(fleet: Fleet) -> Cost:
    from goodput_queries.lake.lake import Lake  # noqa: PLC0415 -- an extra
    from goodput_queries.lake.store import LakeStore  # noqa: PLC0415

    lake = Lake.create(str(_url(fleet)), buckets=max(1, fleet.gpus // GPUS_OF_A_BUCKET))
    with Meter() as meter, contextlib.closing(LakeStore(lake)) as store:
        for step in recipe(fleet.files):
            ingest(store, step.source, [step.path], step.options)
    return meter.cost


def _attached(fleet: Fleet, name: str) -> LocalStore:
    from goodput_queries.lake.pull import attach  # noqa: PLC0415 -- an extra

    store = LocalStore(fleet.folder / f"{name}.duckdb")
    attach(store, str(_url(fleet)))
    return store


def _build(fleet: Fleet, engine: str, workers: int) -> tuple[Cost, float]:
    """Return what a full build took, and the seconds of the stages that tasks compute."""
    with contextlib.closing(_attached(fleet, f"{engine}-{workers}")) as store:
        if engine == "ray":
            from goodput_queries.ledger_build.parts.ray_engine import RayEngine  # noqa: PLC0415

            store.lake_binding.new_engine = lambda: RayEngine(workers=workers)
        else:
            store.lake_binding.new_engine = lambda: InProcess(workers)
        store.lake_binding.engine  # noqa: B018 -- starting workers is no part of a build
        with Meter() as meter:
            timings = store.build()
    heavy = {
        m.name
        for m in models.build_order()
        if m.qualified_name == LEDGER or (m.materialised and reads_readings(m))
    }
    return meter.cost, timings.filter(pl.col("stage").is_in(list(heavy)))["seconds"].sum()


def _stage(fleet: Fleet, result: Path) -> Cost:
    """Compute the two stages of the product from the lake, then add up by hold."""
    with (
        contextlib.closing(_attached(fleet, "local-1")) as store,
        store.cursor() as cursor,
    ):
        lake = store.lake_binding.lake
        assert lake is not None
        with Meter() as meter:
            cursor.execute("begin")
            parts = Parts(cursor, lake, InProcess(1))
            hours = dirty.reading_hours(cursor, None)
            watermarks.note_reading_series(cursor, parts.new_series(hours))
            parts.note_buckets()
            watermarks.set_reading_margin(cursor)
            stages = [m for m in models.of_readings() if m.qualified_name in telemetry_stage.NAMES]
            parts.replace_hours(stages, NodeHours(hours))
            found = cursor.sql(telemetry_stage.OURS).pl()
        cursor.execute("rollback")
    telemetry_stage.write(found, result)
    return meter.cost
