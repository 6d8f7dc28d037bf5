"""A source that is added to others makes the ledger of the recorded session more exact, never less.

Each subset of the sources of its main run is held against the same with one more, with and without
the accounting.
"""

import itertools
import shutil
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
    "slurm": "sacct.txt",
    "nvml": "nvml.jsonl.gz",
    "job-events": "job_events.jsonl.gz",
    "job-log": "joblog/main.log",
    "nccl-inspector": "nccl_inspector/main",
}
# what another source may report more exactly (docs/accounting-rules.md: Attempts, steps and phases)
FREE = {"free_unknown", "idle_no_demand"}
VAGUE = {"unknown", "idle_held", "step_unsplit", "at_risk", "busy_unclassified", *FREE}
BY_TWO_NAMES = {"slurm", "job-log", "job-events", "nvml"}
DERIVED = {"startup", "fault_stall", "teardown"}
TOLERANCE = 0.01
KEYS = ("cluster", "category", "gpu_s")
MAIN_S = 140 * 4
FROM = datetime(2026, 11, 20, 12, 29, 47, tzinfo=UTC).replace(tzinfo=None)
TO = FROM + timedelta(seconds=140)


@pytest.fixture(scope="module")
def reported(new_store):
    """Return the raw rows of each source: those of `main`, and of NVML every fourth."""
    found = {}
    for source, path in SOURCES.items():
        store = new_store()
        options = ReadOptions(cluster="lab", zone=ZoneInfo("UTC"))
        ingest(store, source, [SAMPLE / path], options)
        found[source] = {name: cut(name, rows) for name, rows in evidence_of(store).items()}
        store.close()
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


@pytest.fixture(scope="module")
def reported_by_two_names(reported, new_store, tmp_path_factory):
    """Return the same rows with the log named after Slurm's job, the events after a run."""
    log = tmp_path_factory.mktemp("logs") / "slurm-9102.out"
    shutil.copyfile(SAMPLE / SOURCES["job-log"], log)
    store = new_store()
    ingest(store, "job-log", [log], ReadOptions(cluster="lab", zone=ZoneInfo("UTC")))
    lines = evidence_of(store)["job_events"]
    store.close()
    assert set(lines["run_id"]) == {"9102"}
    events = reported["job-events"]["job_events"].with_columns(run_id=pl.lit("exp-7"))
    return {**reported, "job-log": {"job_events": lines}, "job-events": {"job_events": events}}


def of_cluster(rows, number):
    """Return rows of a cluster `lab<number>`, where nothing has the name of another cluster's."""
    node = pl.element() + f"-{number}"
    renamed = {
        "cluster": pl.lit(f"lab{number}"), "gpu_uuid": pl.col("gpu_uuid") + f"-{number}",
        "node": pl.col("node") + f"-{number}", "host": pl.col("host") + f"-{number}",
        "comm_id": pl.col("comm_id") + f"{number:02d}", "pid": pl.col("pid") + 10_000 * number,
        "pids": pl.col("pids").list.eval(pl.element() + 10_000 * number),
        "nodes": pl.col("nodes").list.eval(node),
    }  # fmt: skip
    if rows.schema.get("nodes") != pl.List(pl.String):  # of a communicator: how many
        del renamed["nodes"]
    return rows.with_columns(**{c: new for c, new in renamed.items() if c in rows.columns})


def elsewhere(rows):
    return rows.with_columns(
        cluster=pl.lit("elsewhere"),
        ts=pl.col("ts") + timedelta(seconds=40),
        gpu_uuid=pl.col("gpu_uuid") + "-of-another",
    )


@pytest.fixture(scope="module")
def ledgers(new_store, reported, reported_by_two_names):
    """Return the GPU-seconds by category of each subset of the sources, by it and the names.

    Each subset is a cluster of one store, which is built once. The one of all sources has another
    cluster beside it, with jobs, hosts and runs of its names; `alone` is the same without it.
    """
    subsets = [some for n in range(1, 6) for some in itertools.combinations(SOURCES, n)]
    wanted = [("reported", some) for some in subsets]
    wanted += [("reported_by_two_names", some) for some in subsets if set(some) >= BY_TWO_NAMES]
    beside = wanted.index(("reported", subsets[-1]))
    wanted.append(("alone", subsets[-1]))
    of = {"reported": reported, "reported_by_two_names": reported_by_two_names, "alone": reported}
    tables = {}
    for name, rows in reported["job-events"].items():
        tables["elsewhere", name] = [elsewhere(of_cluster(rows, beside))]
    for number, (names, some) in enumerate(wanted):
        for source in some:
            for name, rows in of[names][source].items():
                tables.setdefault((source, name), []).append(of_cluster(rows, number))
    store = new_store()
    for (source, name), frames in tables.items():
        load(store, name, pl.concat(frames), source)
    store.build()
    found = {(names, frozenset(some)): {} for names, some in wanted}
    for cluster, *spent in ledger(store, by=["cluster", "category"]).select(KEYS).rows():
        if cluster != "elsewhere":
            names, some = wanted[int(cluster.removeprefix("lab"))]
            found[names, frozenset(some)].update([spent])
    store.close()
    return found


def test_no_source_takes_from_what_others_tell(ledgers):
    """Ends that are derived are as coarse as the lines they are derived from: these may move."""
    lost = {}
    ledgers = {some: ledger for (names, some), ledger in ledgers.items() if names == "reported"}
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


@pytest.mark.parametrize("others", [["nvml"], ["nvml", "nccl-inspector"]])
def test_it_does_not_matter_that_log_and_events_name_the_run_differently(ledgers, others):
    sources = frozenset(("slurm", "job-log", "job-events", *others))

    assert ledgers["reported_by_two_names", sources] == ledgers["reported", sources]


def test_a_cluster_that_has_nothing_to_do_with_it_changes_nothing(ledgers):
    every = frozenset(SOURCES)

    assert ledgers["reported", every] == ledgers["alone", every] != {}
