"""The ledger of a made-up fleet against its truth: 64 GPUs, six hours, every kind of loss."""

import json

import polars as pl
import pytest
from tests.queries import made_up_fleet

from goodput_queries.check import check
from goodput_queries.ledger import capacity_ms, ledger
from goodput_queries.scope import Scope

INTERVAL_MS = 30_000
SHARE_OF_CATEGORY, SHARE_OF_CAPACITY = 0.02, 0.0005  # whichever is larger
TELEMETRY = ("idle_held", "busy_unclassified", "unknown")


@pytest.fixture(scope="module")
def folder(empty_database, tmp_path_factory):
    return made_up_fleet.eventful(empty_database, tmp_path_factory)[0]


@pytest.fixture(scope="module")
def fleet(empty_database, tmp_path_factory, new_store):
    store = new_store(copy_of=made_up_fleet.eventful(empty_database, tmp_path_factory)[1])
    yield store
    store.close()


@pytest.fixture(scope="module")
def truth(folder):
    frame = pl.read_parquet(folder / "truth.parquet")
    length = pl.col("end_ms") - pl.col("start_ms")
    return frame.with_columns((length * pl.col("slices") / 7).alias("gpu_ms"))


@pytest.fixture(scope="module")
def notes(folder):
    return [json.loads(line) for line in (folder / "truth_notes.jsonl").read_text().splitlines()]


def by(column, frame):
    return dict(frame.group_by(column).agg(pl.col("gpu_ms").sum()).rows())


def gap_ends_ms(truth, category):
    """Return one sampling interval for each end of a stretch that readings alone decide."""
    if category not in TELEMETRY:
        return 0.0
    units = ("gpu_uuid", "gpu_instance")
    ends = truth.sort(*units, "start_ms").with_columns(
        pl.col("expected").shift(1).over(units).alias("before")
    )
    mine = (pl.col("expected") == category) | (pl.col("before") == category)
    changes = ends.filter(mine & (pl.col("expected") != pl.col("before")))
    return float((changes["slices"] / 7).sum()) * INTERVAL_MS


def test_capacity_is_conserved_to_the_millisecond(fleet):
    found = check(fleet)

    assert capacity_ms(fleet) == 64 * 6 * 3_600_000
    assert ledger(fleet)["gpu_ms"].sum() == capacity_ms(fleet)
    assert found.filter(found["violations"] > 0).rows() == []


def test_every_category_is_what_the_rules_make_of_the_plan(fleet, truth):
    found = dict(ledger(fleet).select("category", "gpu_ms").rows())
    expected = by("expected", truth)
    capacity = capacity_ms(fleet)

    off = {}
    for category in found.keys() | expected.keys():
        wanted = expected.get(category, 0.0)
        allowed = max(SHARE_OF_CATEGORY * wanted, SHARE_OF_CAPACITY * capacity)
        allowed += gap_ends_ms(truth, category)
        if abs(found.get(category, 0) - wanted) > allowed:
            off[category] = (found.get(category, 0), wanted)
    assert off == {}


def test_what_follows_from_the_scheduler_is_exact(fleet, truth):
    found = dict(ledger(fleet).select("category", "gpu_ms").rows())
    expected = by("expected", truth)

    for category in (
        *("down", "maintenance", "drained", "powered_off", "reserved_idle", "stranded"),
        *("idle_with_demand", "idle_no_demand", "suspended"),
    ):
        wanted = pytest.approx(expected.get(category, 0.0), abs=1_000)
        assert found.get(category, 0) == wanted, category


@pytest.mark.parametrize(
    ("story", "categories"),
    [
        ("thermal-throttle", {"throttled", "straggler_wait"}),
        ("straggling-rank", {"straggler_wait"}),
        ("periodic-gaps", {"idle_held", "checkpoint_save"}),
        ("data-starved", {"data_stall"}),
        ("unused-allocation", {"idle_held"}),
        ("suspended", {"suspended"}),
        ("nccl-hang", {"fault_stall"}),
        ("out-of-memory", {"failed_without_progress"}),
        ("restart-in-job", {"lost_work", "fault_stall"}),
        ("measured", {"productive", "exposed_comm", "straggler_wait"}),
        ("saves-nobody-confirms", {"at_risk"}),
    ],
)
def test_each_story_is_in_its_own_run(fleet, truth, notes, story, categories):
    note = next(n for n in notes if n.get("story") == story)
    found = dict(
        ledger(fleet, scope=Scope(run=f"atlas/{note['run_id']}"))
        .select("category", "gpu_ms")
        .rows()
    )
    expected = by("expected", truth.filter(pl.col("run_id") == note["run_id"]))

    assert categories <= found.keys()
    assert sum(found.values()) == pytest.approx(sum(expected.values()), abs=1_000)
    for category in categories:
        slack = gap_ends_ms(truth.filter(pl.col("run_id") == note["run_id"]), category)
        assert found[category] == pytest.approx(expected[category], rel=0.03, abs=slack), category
