"""Evidence of a recorded fleet as its sources report it until a time, for tests and benchmarks."""

from datetime import UTC, datetime

import polars as pl
from tests.fleets.generate import generate, read_in

from goodput_queries.catalog import models
from goodput_queries.evidence.batch import Batch
from goodput_queries.evidence.load import prepared

Evidence = dict[str, pl.DataFrame]  # by raw table, without load_sequence
MOMENTS = {
    "job_events": "ts", "gpu_samples": "ts", "gpu_samples_other": "ts", "gpu_events": "ts",
    "collectives": "dumped_at",
}  # fmt: skip
JOB_RUN = ("cluster", "job_id_raw", "submit_at")
START = datetime(2026, 11, 16, tzinfo=UTC).replace(tzinfo=None)  # of made-up fleets


def made_up_evidence(folder, store, *, gpus, hours, seed=5):
    """Return the evidence of a fleet that is written to a folder and read into an empty store."""
    generate(folder, gpus=gpus, hours=hours, seed=seed, start=START.replace(tzinfo=UTC))
    read_in(store, folder)
    return evidence_of(store)


def evidence_of(store, *, without=()):
    """Return all that was loaded into a store, less the tables that are named."""
    loaded = store.read("select distinct table_name from state.ingested where rows_new > 0")
    names = sorted(set(loaded["table_name"]))
    return {name: rows_of(store, name) for name in names if name not in without}


def rows_of(store, name, where="true", parameters=None):
    """Return the rows of a raw table as a source would hand them over."""
    table = models.base_tables()[name].qualified_name
    rows = store.read(f"select * from {table} where {where}", parameters)
    return rows.drop("load_sequence", strict=False)


def load(store, name, rows, part):
    """Load rows, a batch a source as ingestors do."""
    for batch in batches(name, rows, part):
        store.load(batch)


def batches(name, rows, part):
    """Return rows as ingestors hand them to a store: a batch a source, looked at for its keys."""
    return [
        prepared(Batch(name, of_source, str(source), "a test", f"{name} {source} {part}"))
        for (source,), of_source in rows.group_by("source", maintain_order=True)
    ]


def reported_until(evidence, moment):
    """Return what the sources report until `moment`.

    Inventories, rates and reservations are known from the start.
    """
    return {name: _as_of(evidence, name, moment) for name in evidence}


def reported_between(evidence, after, until):
    """Return the answers of sources polled at `after` to the next poll at `until`."""
    found = {}
    for name, rows in reported_until(evidence, until).items():
        if name in MOMENTS:
            found[name] = rows.filter(pl.col(MOMENTS[name]) > after)
        elif name in {"job_runs", "node_states"}:
            found[name] = rows.filter(pl.col("end_at").is_null() | (pl.col("end_at") > after))
        elif name == "holds":
            known = _as_of(evidence, name, after)
            found[name] = rows.join(known, on=JOB_RUN, how="anti", nulls_equal=True)
    return {name: rows for name, rows in found.items() if not rows.is_empty()}


def _as_of(evidence, name, moment):
    rows = evidence[name]
    if name in MOMENTS:
        return rows.filter(pl.col(MOMENTS[name]) <= moment)
    if name == "job_runs":
        return _job_runs(rows, moment)
    if name == "node_states":
        return rows.filter(pl.col("start_at") <= moment).with_columns(
            end_at=pl.when(pl.col("end_at") <= moment).then("end_at")
        )
    if name == "holds":  # a scheduler reports them for jobs that have started
        started = evidence["job_runs"].filter(pl.col("start_at") <= moment)
        return rows.join(started, on=JOB_RUN, how="semi", nulls_equal=True)
    return rows


def _job_runs(rows, moment):
    """Return the records as the accounting had them: pending, running or ended."""
    is_started, is_ended = pl.col("start_at") <= moment, pl.col("end_at") <= moment
    elapsed_s = (pl.lit(moment) - pl.col("start_at")).dt.total_seconds()
    return rows.filter(pl.col("submit_at") <= moment).with_columns(
        start_at=pl.when(is_started).then("start_at"),
        end_at=pl.when(is_ended).then("end_at"),
        state=pl.when(is_ended)
        .then("state")
        .when(is_started)
        .then(pl.lit("RUNNING"))
        .otherwise(pl.lit("PENDING")),
        nodes=pl.when(is_started).then("nodes"),
        elapsed_s=pl.when(is_ended).then("elapsed_s").when(is_started).then(elapsed_s),
        observed_at=pl.lit(moment),
    )


def stored_stages(store):
    """Return the rows of every stage that builds keep."""
    kept = [m for m in models.build_order() if m.layer != "temp" and m.is_stored]
    return {m.qualified_name: store.read(f"from {m.qualified_name}").sort(pl.all()) for m in kept}


def assert_same(ours, theirs):
    """Assert that stages have the same rows."""
    for name, rows in theirs.items():
        assert ours[name].rows() == rows.rows(), name
