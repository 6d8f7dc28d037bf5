"""The made-up fleet: same bytes for a seed, formats that the ingestors take, all stories in."""

import contextlib
from datetime import UTC, datetime

import polars as pl
import pytest
from tests.fleets.generate import generate
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.sources.registry import recognise
from goodput_synthetic.demo import recipe
from goodput_synthetic.fleet.plans import shown

START = datetime(2026, 11, 16, tzinfo=UTC)
GPUS, HOURS, SEED = 64, 24, 7


def fleet_in(folder, **changes):
    settings = {"gpus": GPUS, "hours": HOURS, "seed": SEED, "start": START, "interval_s": 300}
    generate(folder, plan=shown, **settings | changes)
    return folder


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hash(path.read_bytes()) for path in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fleet_in(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def loaded(folder, new_store):
    with contextlib.closing(new_store()) as store:
        yield store, [ingest(store, of.source, [of.path], of.options) for of in recipe(folder)]


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    assert digests(fleet_in(tmp_path)) == digests(folder)


def test_pods_hold_their_gpus_as_long_as_slurm_gives_them_to_jobs(loaded, new_store, tmp_path):
    fleet_in(tmp_path, cluster="pods", scheduler="kubernetes")
    store = new_store()
    (pods,) = (step for step in recipe(tmp_path) if step.source == "kubernetes")
    ingest(store, pods.source, [pods.path], pods.options)

    held = "select sum({} * epoch(end_at - start_at)) from raw.{} where end_at is not null"
    in_slurm = f"{held.format('gpus', 'job_runs')} and not contains(gpu_type, 'g.')"
    assert store.read(held.format(1, "holds")).item() == loaded[0].read(in_slurm).item() > 0


@each(
    ({"gpus": 60}, "whole nodes of 8 GPUs"),
    ({"gpus": 8}, "at least 64"),
    ({"hours": 0}, "cannot be generated"),
    ({"interval_s": 7}, "cannot be generated"),
    ({"start": datetime(2026, 11, 16)}, "whole hour with a zone"),  # noqa: DTZ001 -- the point
    ({"start": datetime(2026, 11, 16, 0, 30, tzinfo=UTC)}, "whole hour"),
)
def test_a_fleet_that_cannot_be_is_refused(tmp_path, changes, said):
    with pytest.raises(ValueError, match=said):
        fleet_in(tmp_path, **changes)


def test_the_ingestors_take_every_line(loaded):
    _, summaries = loaded

    assert [s.rejects for s in summaries] == [0] * len(summaries)
    assert all(s.rows_new > 0 and not s.unrecognised for s in summaries)
    # a listing of the controller has job runs that the accounting has, and whose they hold
    assert [s.rows_by_table["job_runs"] for s in summaries if s.rows_new < s.rows] == [0]
    tables = set().union(*(s.rows_by_table for s in summaries))
    assert tables == {
        "gpus", "gpu_instances", "job_runs", "nodes", "node_states", "holds", "reservations",
        "gpu_samples", "gpu_samples_other", "job_events", "gpu_events", "collectives", "rates",
        "tariffs", "budgets", "node_racks", "node_samples", "link_samples",
        "carbon", "power_feeds", "rank_map", "comm_transports", "nccl_benchmarks",
        "comm_algorithms", "flight_groups", "flight_records", "node_settings", "node_tests",
        "step_replays", "replayed_parts", "replayed_operations",
    }  # fmt: skip


def test_the_marts_of_rare_evidence_have_rows(loaded):
    loaded[0].build()
    marts = (
        "hangs", "silent_corruption", "scaling_efficiency", "gpu_model_speed_ups", "memory_growth",
        "version_changes", "fabric_incidents", "busy_unallocated", "gpu_link_errors", "run_input",
    )  # fmt: skip
    assert [m for m in marts if loaded[0].read(f"from marts.{m} limit 1").is_empty()] == []


def test_every_file_is_recognised_without_being_named(folder):
    for step in recipe(folder):
        files = [path for path in (step.path, *step.path.rglob("*")) if path.is_file()]
        assert {recognise(path).name for path in files} == {step.source}


def test_all_kinds_of_loss_are_in_it(folder):
    assert {*pl.read_parquet(folder / "truth.parquet")["expected"]} >= {
        "down", "maintenance", "drained", "powered_off", "reserved_idle", "stranded",
        "idle_with_demand", "idle_no_demand", "suspended", "startup", "restore",
        "checkpoint_save", "data_stall", "lost_work", "fault_stall", "failed_without_progress",
        "idle_held", "teardown", "throttled", "straggler_wait", "exposed_comm", "step_unsplit",
        "productive", "at_risk", "busy_unclassified", "unknown",
    }  # fmt: skip
