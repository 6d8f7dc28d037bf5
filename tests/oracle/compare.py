"""Compares the product's own ingest and build of a world with the oracle's result."""

import shutil
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tests.oracle.files import in_parts, write
from tests.oracle.oracle import ledger as expected_ledger

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.ledger import ledger


def compare(world, folder, empty, *, is_in_parts=False):
    """Return the cells that differ: cell, product's and oracle's milliseconds."""
    ours = product_ledger(world, folder, empty, is_in_parts=is_in_parts)
    expected = expected_ledger(world)
    differing = [
        cell for cell in ours.keys() | expected.keys() if ours.get(cell, 0) != expected.get(cell, 0)
    ]
    return [(cell, ours.get(cell, 0), expected.get(cell, 0)) for cell in sorted(differing)]


def product_ledger(world, folder, empty, *, is_in_parts=False):
    """Write the world's files, read them in, build, and return the ledger's cells.

    In parts, the files come in any order and a build follows each: the ledger is the same.
    """
    files = write(world, folder)
    if is_in_parts:
        files = in_parts(files, world.seed)
    path = folder / "fleet.duckdb"
    shutil.copyfile(empty, path)
    store = LocalStore(path, threads=1)
    try:
        for source, file, options in files:
            summary = ingest(store, source, [file], _options(options))
            if summary.refused or summary.unrecognised:
                raise AssertionError(f"{file}: {summary.refused or summary.unrecognised}")
            if is_in_parts:
                store.build()
        store.build()
        rows = ledger(store, by=["gpu", "hour", "category", "job", "user"])
    finally:
        store.close()
        path.unlink()
    found = {}
    for gpu, hour, category, job, user, ms in rows.select(
        "gpu", "hour", "category", "job", "user", "gpu_ms"
    ).iter_rows():
        moment = hour if hour.tzinfo else hour.replace(tzinfo=UTC)
        hour_ms = round(moment.timestamp() * 1000)
        if ms and 0 <= hour_ms - world.start_ms < world.end:
            found[(gpu.split("/")[-1], hour_ms, category, job or "", user or "")] = ms
    return found


def _options(given):
    """Return reading options; zones by name and moments in epoch milliseconds."""
    options = dict(given)
    if "zone" in options:
        options["zone"] = ZoneInfo(options["zone"])
    if "observed_at" in options:
        at = datetime.fromtimestamp(options["observed_at"] / 1000, UTC)
        options["observed_at"] = at.replace(tzinfo=None)
    return ReadOptions(**options)
