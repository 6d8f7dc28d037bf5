"""The recorded session of four H200s, or parts of it, in a database of the test's own."""

import contextlib
import shutil
from pathlib import Path

from tests.made_once import made_once

from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore

CAPTURED = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "nccl_inspector/main"
SAMPLE = Path(__file__).parents[1] / "sample_data" / "h200x4-a"


def built(empty, folders, *parts):
    """Yield a store with these files or folders of the session, as cluster `lab`, built.

    The same parts are read and built once, and copied from then on.
    empty: an empty database, which is copied
    """

    def make(whole):
        shutil.copyfile(empty, whole)
        with contextlib.closing(LocalStore(whole)) as store:
            paths = [SAMPLE / part for part in parts]
            ingest.ingest(store, "auto", paths, ReadOptions(cluster="lab"))
            store.build()

    name = "-".join(("recorded", *parts)).replace("/", "_")
    path = folders.mktemp("recorded") / "fleet.duckdb"
    shutil.copyfile(made_once(folders, name, make), path)
    with contextlib.closing(LocalStore(path)) as store:
        yield store


def extent_ms(store):
    """Return the first and the last moment there is evidence of."""
    sql = "select epoch_ms(min(first_at)), epoch_ms(max(as_of_at)) from marts.clusters"
    first, last = store.read(sql).row(0)
    return first, last
