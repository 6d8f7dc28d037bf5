"""What goodput makes of a history: its files through the real sources, a build, one run's row."""

from contextlib import closing
from dataclasses import dataclass

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore


@dataclass(frozen=True)
class Measured:
    """Of the one run of a history; ettr: null where nothing of it is settled.

    ettr_hi: if all unclassified time was useful: a killed process may have finished its last save.
    """

    ettr: float | None
    ettr_hi: float | None
    restarts: int
    is_matched: bool


def measured(files, database):
    """Ingest into a new database and build; return what the run's row says."""
    with closing(LocalStore(database, threads=1)) as store:
        for source, path in files:
            ingest(store, source, [path], ReadOptions(cluster="c"))
        store.build()
        unmatched = store.read(
            "select count(*) from intermediate.int_event_lives where job_run_key is null"
        ).item()
        runs = store.read("select ettr_ratio, ettr_hi_ratio, restarts from marts.runs")
    is_matched = unmatched == 0 and runs.height == 1
    ettr, ettr_hi, restarts = runs.row(0) if runs.height else (None, None, 0)
    return Measured(ettr, ettr_hi, restarts, is_matched)
