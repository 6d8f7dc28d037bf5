"""Compares the product's own ingest and build of a world with the oracle's result."""

import shutil
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tests.oracle.files import in_parts, own_gpus, write
from tests.oracle.oracle import ledger as expected_ledger

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.ledger import ledger


def compare(worlds, folder, empty, *, build_every=None):
    """Return the cells that differ by seed: cell, product's and oracle's milliseconds.

    The worlds are clusters of one database, which is built once.
    """
    found = product_ledgers(worlds, folder, empty, build_every=build_every)
    return {world.seed: _differing(found[world.seed], expected_ledger(world)) for world in worlds}


def _differing(ours, expected):
    cells = sorted(ours.keys() | expected.keys())
    both = [(cell, ours.get(cell, 0), expected.get(cell, 0)) for cell in cells]
    return [(cell, our_ms, ms) for cell, our_ms, ms in both if our_ms != ms]


def product_ledgers(worlds, folder, empty, *, build_every=None):
    """Write the files of worlds, read them in, build, and return the cells of each ledger.

    build_every: of this many files that come in any order, in parts: the ledger is the same
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fleet.duckdb"
    shutil.copyfile(empty, path)
    store = LocalStore(path, threads=1)
    try:
        for world in worlds:
            files = write(world, folder / str(world.seed))
            if build_every is not None:
                files = in_parts(files, world.seed)
            for number, (source, file, options) in enumerate(files, 1):
                summary = ingest(store, source, [file], _options(options))
                if summary.refused or summary.unrecognised:
                    raise AssertionError(f"{file}: {summary.refused or summary.unrecognised}")
                if build_every is not None and number % build_every == 0:
                    store.build()
        store.build()
        rows = ledger(store, by=["cluster", "gpu", "hour", "category", "job", "user"])
    finally:
        store.close()
        path.unlink()
    return {world.seed: _cells(rows, world) for world in worlds}


def _cells(rows, world):
    """Return the milliseconds of a world by GPU, hour, category, job and user."""
    found = {}
    for cluster, gpu, hour, category, job, user, ms in rows.select(
        "cluster", "gpu", "hour", "category", "job", "user", "gpu_ms"
    ).iter_rows():
        moment = hour if hour.tzinfo else hour.replace(tzinfo=UTC)
        hour_ms = round(moment.timestamp() * 1000)
        is_own = cluster in {world.cluster, world.shared_cluster}
        if is_own and ms and 0 <= hour_ms - world.start_ms < world.end:
            name = gpu.split("/")[-1].replace(own_gpus(world), "GPU-")
            found[(name, hour_ms, category, job or "", user or "")] = ms
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
