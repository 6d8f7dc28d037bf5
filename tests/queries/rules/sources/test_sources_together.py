"""A source that is added to others makes the ledger of the recorded session more exact, never less.

Each subset of the sources of its main run is held against the same with one more, with and without
the accounting.
"""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.evidence_over_time import evidence_of, load
from tests.recorded_session import SAMPLE

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.ledger import ledger

SOURCES = {
    "slurm": "sacct.txt", "nvml": "nvml.jsonl.gz", "job-events": "job_events.jsonl.gz",
    "job-log": "joblog/main.log", "nccl-inspector": "nccl_inspector/main",
}  # fmt: skip
# what another source may report more exactly (docs/accounting-rules.md: Attempts, steps and phases)
FREE = {"free_unknown", "idle_no_demand"}
VAGUE = {"unknown", "idle_held", "step_unsplit", "at_risk", "busy_unclassified", *FREE}
DERIVED = {"startup", "fault_stall", "teardown"}
TOLERANCE = 0.01
KEYS = ("cluster", "category", "gpu_s")
MAIN_S = 140 * 4
FROM = datetime(2026, 11, 20, 12, 29, 47, tzinfo=UTC).replace(tzinfo=None)
TO = FROM + timedelta(seconds=140)


@pytest.fixture(scope="module")
def reported(module_store):
    """Return the raw rows of each source: those of `main`, and of NVML every fourth."""
    found = {}
    for source, path in SOURCES.items():
        store = module_store()
        options = ReadOptions(cluster="lab", zone=ZoneInfo("UTC"))
        ingest(store, source, [SAMPLE / path], options)
        found[source] = {name: cut(name, rows) for name, rows in evidence_of(store).items()}
    return found


def cut(name, rows):
    if name == "job_runs":
        return rows.filter(pl.col("job_name") == "main")
    if name == "job_events":
        return rows.filter(pl.col("run_id") == "main")
    if name in ("gpu_samples", "gpu_samples_other", "gpu_processes"):
        rows = rows.filter(pl.col("ts").is_between(FROM, TO)).sort("gpu_uuid", "ts")
        return rows.filter(pl.int_range(pl.len()).over("gpu_uuid") % 4 == 0)
    return rows


def of_cluster(rows, number):
    """Return rows of a cluster `lab<number>`, where nothing has the name of another cluster's."""
    node = pl.element() + f"-{number}"
    renamed = {"cluster": pl.lit(f"lab{number}"), "gpu_uuid": pl.col("gpu_uuid") + f"-{number}",
               "node": pl.col("node") + f"-{number}", "host": pl.col("host") + f"-{number}",
               "comm_id": pl.col("comm_id") + f"{number:02d}",
               "pid": pl.col("pid") + 10_000 * number,
               "pids": pl.col("pids").list.eval(pl.element() + 10_000 * number),
               "nodes": pl.col("nodes").list.eval(node)}  # fmt: skip
    if rows.schema.get("nodes") != pl.List(pl.String):  # of a communicator: how many
        del renamed["nodes"]
    return rows.with_columns(**{c: new for c, new in renamed.items() if c in rows.columns})


@pytest.fixture(scope="module")
def ledgers(module_store, reported):
    """Return the GPU-seconds by category of each subset of the sources.

    Each subset is a cluster of one store, which is built once.
    """
    subsets = [some for n in range(1, 6) for some in itertools.combinations(SOURCES, n)]
    tables = {}
    for number, some in enumerate(subsets):
        for source in some:
            for name, rows in reported[source].items():
                tables.setdefault((source, name), []).append(of_cluster(rows, number))
    store = module_store()
    for (source, name), frames in tables.items():
        load(store, name, pl.concat(frames), source)
    store.build()
    found = {frozenset(some): {} for some in subsets}
    for cluster, *spent in ledger(store, by=["cluster", "category"]).select(KEYS).rows():
        found[frozenset(subsets[int(cluster.removeprefix("lab"))])].update([spent])
    return found


@pytest.mark.machine  # the ledgers of 31 clusters
def test_no_source_takes_from_what_others_tell(ledgers):
    """Ends that are derived are as coarse as the lines they are derived from: these may move."""
    lost = {}
    assert len(ledgers) == 31
    for some, added in itertools.product(ledgers, SOURCES):
        if added in some:
            continue
        is_stronger = added == "job-events" and "job-log" in some
        before, after = ledgers[some], ledgers[some | {added}]
        for category in before.keys() - VAGUE - (DERIVED if is_stronger else set()):
            loss_s = before[category] - after.get(category, 0)
            if loss_s > TOLERANCE * MAIN_S:
                lost[(*sorted(some), "+", added, category)] = loss_s
    assert lost == {}
