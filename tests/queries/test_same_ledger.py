"""However the evidence of a fleet arrives, the ledger is the same: in slices, shuffled, threads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from goodput_app.demo import recipe
from goodput_ingest.load import ingest
from goodput_ingest.synthetic import generate
from goodput_queries import catalog
from goodput_queries.batch import Batch
from goodput_queries.store import LocalStore

START = datetime(2026, 11, 16, tzinfo=UTC).replace(tzinfo=None)
LATER = {"job_events": "ts", "gpu_samples": "ts", "gpu_events": "ts", "collectives": "dumped_at"}
STAGES = (
    "marts.ledger_segments",
    "marts.ledger_hourly",
    "intermediate.int_holds",
    "intermediate.int_hold_conflicts",
    "intermediate.int_attempts",
    "intermediate.int_train_steps",
    "intermediate.int_rank_step_losses",
    "intermediate.int_step_splits",
    "intermediate.int_gpu_activity",
    "intermediate.int_node_intervals",
    "intermediate.int_said_failures",
)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """Return the raw rows of 64 GPUs and four hours, by table."""
    folder = tmp_path_factory.mktemp("fleet")
    generate(folder, gpus=64, hours=4, seed=5, start=START.replace(tzinfo=UTC))
    store = LocalStore()
    for step in recipe(folder):
        ingest(store, step.source, [step.path], step.options)
    tables = {
        name: store.read(f"select * from raw.{name}")
        for name in catalog.models("raw")
        if name not in {"ingested", "rejects"}
    }
    store.close()
    return {
        name: rows.drop("load_sequence", strict=False)
        for name, rows in tables.items()
        if not rows.is_empty()
    }


def load(store, name, rows, part):
    """Load rows, a batch a source as ingestors do."""
    for (source,), of_source in rows.group_by("source", maintain_order=True):
        store.load(Batch(name, of_source, str(source), "a test", f"{name} {source} {part}"))


def stage_rows(store):
    return {name: store.read(f"from {name}").sort(pl.all()) for name in STAGES}


def assert_same(ours, theirs):
    for name in STAGES:
        assert ours[name].rows() == theirs[name].rows(), name


@pytest.fixture(scope="module")
def whole(evidence):
    """Return the stages of a build of everything at once."""
    store = LocalStore()
    for name, rows in evidence.items():
        load(store, name, rows, "whole")
    store.build()
    yield stage_rows(store)
    store.close()


def as_of(rows, name, moment):
    """Return what a source would have told until `moment`."""
    if name in LATER:
        return rows.filter(pl.col(LATER[name]) <= moment)
    if name == "job_runs":
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
    return rows


def test_a_fleet_that_is_watched_live_has_the_ledger_of_one_read_at_the_end(evidence, whole):
    store = LocalStore()
    moments = [START + timedelta(minutes=m) for m in (3, 62, 70, 118, 181, 186)]
    for moment in moments:
        for name, rows in evidence.items():
            load(store, name, as_of(rows, name, moment), moment)
        store.build()
    for name, rows in evidence.items():
        load(store, name, rows, "whole")
    store.build()

    assert_same(stage_rows(store), whole)
    store.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_in_any_order_and_number_of_slices_give_the_same_ledger(evidence, whole, threads):
    store = LocalStore(threads=threads)
    for part in range(3):
        names = list(evidence)
        for name in names[part:] + names[:part]:
            rows = evidence[name]
            shuffled = rows.sample(fraction=1, shuffle=True, seed=11)
            load(store, name, shuffled.gather_every(3, part), part)
        store.build()

    assert_same(stage_rows(store), whole)
    store.close()
