"""One sum of GPU time is one figure, wherever it is shown: a made-up fleet beside a recording."""

import shutil
from datetime import UTC, datetime

import pytest

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_ingest.synthetic import generate
from goodput_queries.database import LocalStore
from goodput_queries.scope import Scope

pytestmark = pytest.mark.machine

START = datetime(2026, 11, 20, tzinfo=UTC)  # its hours end with the recorded session
HOUR_MS = 3_600_000
FROM_MS = round(START.timestamp() * 1000)
# ranges of hours: whole ones, ones that begin and end within an hour, all
RANGES = [
    (0, 12 * HOUR_MS),
    (4 * HOUR_MS + 35 * 60_000 + 137, 12 * HOUR_MS - 25 * 60_000 - 211),
    (None, None),
]
# what is not available is listed with the losses, and is no waste
LOSSES = (
    "marts.losses inner join reference.gpu_second_categories using (category) where kind = 'badput'"
)
CLUSTERS = (None, "atlas", "lab")


@pytest.fixture(scope="module")
def store(recorded_demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    generate(folder / "files", gpus=64, hours=12, seed=7, start=START)
    store = LocalStore(shutil.copyfile(recorded_demo, folder / "demo.duckdb"))
    for step in recipe(folder / "files"):
        ingest(store, step.source, [step.path], step.options)
    store.build()
    yield store
    store.close()


def scope(range_, cluster=None):
    begin, end = range_
    of = {} if begin is None else {"from_ms": FROM_MS + begin, "to_ms": FROM_MS + end}
    return Scope(cluster=cluster, **of)


def one(store, sql, where):
    return store.read(sql, scope=where).row(0)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("range_", RANGES)
def test_waste_is_one_figure(store, range_, cluster):
    where = scope(range_, cluster)
    figures = [
        one(store, f"select sum(gpu_ms)::bigint, sum(cost) from {source}", where)
        for source in (
            "marts.ledger_by_category where kind = 'badput'", "marts.waste_by_team", LOSSES
        )
    ]  # fmt: skip
    summary = one(store, "select wasted_ms, wasted_cost from marts.goodput_summary", where)

    assert {gpu_ms or 0 for gpu_ms, _ in figures} == {summary[0] or 0}
    for _, cost in figures:
        assert (cost or 0) == pytest.approx(summary[1] or 0, abs=1e-5)


@pytest.mark.parametrize("range_", RANGES)
def test_clusters_add_up_and_none_wastes_more_than_all(store, range_):
    sql = "select wasted_ms, wasted_cost, held_ms, capacity_ms from marts.goodput_summary"
    every, *each = (
        [value or 0 for value in one(store, sql, scope(range_, cluster))] for cluster in CLUSTERS
    )

    assert [sum(values) for values in zip(*each, strict=True)] == pytest.approx(every, abs=1e-5)
    assert all(part <= whole for values in each for part, whole in zip(values, every, strict=True))


@pytest.mark.parametrize("range_", RANGES)
def test_allocated_time_is_one_figure_and_executing_idle_a_part_of_it(store, range_):
    where = scope(range_)
    held_ms = one(store, "select held_ms from marts.goodput_summary", where)[0]
    allocated = "sum(gpu_ms)::bigint from marts.ledger_by_category where kind <> 'free'"
    runs, teams = (
        one(store, f"select sum(idle_ms), sum(held_ms) from marts.executing_idle{by}", where)
        for by in ("", "_by_team")
    )
    of_clusters = [
        one(store, "select sum(idle_ms), sum(held_ms) from marts.executing_idle", scope(range_, c))
        for c in CLUSTERS[1:]
    ]

    assert runs == teams
    assert runs[0] <= runs[1] <= held_ms <= one(store, f"select {allocated}", where)[0]
    assert (
        tuple(sum(value or 0 for value in values) for values in zip(*of_clusters, strict=True))
        == runs
    )


@pytest.mark.parametrize("cluster", CLUSTERS[1:])
@pytest.mark.parametrize("range_", RANGES)
def test_data_quality_has_the_allocated_time_of_the_ledger(store, range_, cluster):
    """In the scheduler's units: an instance of a GPU is one, and what is unplaced counts."""
    where = scope(range_, cluster)
    of_scheduler = one(store, "select held_gpu_s from marts.scheduler_reconciliation", where)[0]
    placed = one(
        store,
        """select sum(gpu_ms * parts.of / parts.share) / 1000
        from marts.ledger_scoped as ledger
        inner join (
            select
                gpu_uuid, gpu_instance,
                any_value(share_of) as of, any_value(share_hi - share_lo) as share
            from intermediate.int_gpu_units group by all
        ) as parts using (gpu_uuid, gpu_instance)
        where job_run_key is not null""",
        where,
    )[0]
    unplaced = one(store, "select sum(gpu_ms) / 1000 from marts.unplaced", where)[0]

    assert float(placed or 0) + float(unplaced or 0) == pytest.approx(float(of_scheduler), abs=1)
