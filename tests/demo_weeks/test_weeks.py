"""The demo's weeks of archived hours: their files, how they are made, the demo that has them."""

import contextlib
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.demo_weeks import weeks

from goodput_app.weekly import like_for_like
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.ledger import capacity_ms, ledger
from goodput_queries.scope import Scope
from goodput_synthetic import demo

SHIPPED = Path(__file__).parents[2] / "sample_data" / demo.WEEKS
HOUR_MS, GPUS, HOURS = 3_600_000, 64, 2
END_MS = int(demo.FLEET_START.timestamp()) * 1000


def small(number):
    return weeks.week(number, gpus=GPUS, hours=HOURS, end=demo.FLEET_START)


@pytest.fixture(scope="module")
def small_week(tmp_path_factory, empty_database):
    """Return the folder of the last week, of 64 GPUs and two hours."""
    folder = tmp_path_factory.mktemp("weeks") / "week-5"
    weeks.write(folder, small(4), empty_database)
    return folder


def test_the_same_week_gives_the_same_bytes(small_week, empty_database, tmp_path):
    weeks.write(tmp_path, small(4), empty_database)

    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        p.name: p.read_bytes() for p in small_week.iterdir()
    }


@pytest.mark.slow
def test_the_generator_makes_the_shipped_week_again(tmp_path):
    world = weeks.week(3, gpus=demo.FLEET_GPUS, hours=weeks.WEEK_HOURS, end=demo.FLEET_START)
    weeks.write(tmp_path, world)

    for name in ("ledger.parquet", "energy.parquet"):
        assert pl.read_parquet(tmp_path / name).equals(pl.read_parquet(SHIPPED / "week-4" / name))


@pytest.mark.parametrize("number", range(len(weeks.PLANS)))
def test_a_shipped_week_accounts_for_every_gpu_hour_of_the_fleet(number):
    archived = pl.read_parquet(SHIPPED / f"week-{number + 1}" / "ledger.parquet")
    first_ms = END_MS - (len(weeks.PLANS) - number) * weeks.WEEK_HOURS * HOUR_MS

    of_hours = archived.group_by("hour_ms").agg(pl.col("gpu_ms").sum())

    assert set(of_hours["gpu_ms"]) == {demo.FLEET_GPUS * HOUR_MS}
    assert set(of_hours["hour_ms"]) == {first_ms + n * HOUR_MS for n in range(weeks.WEEK_HOURS)}


@pytest.fixture(scope="module")
def small_demo(small_week, tmp_path_factory):
    """Return a demo of a small fleet over two hours, after a week of two hours."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(small_week, folder / "sample" / demo.WEEKS / "week-5")
    (folder / "sample" / "demo.toml").write_text("ingest = []\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "FLEET_GPUS", GPUS)
        patch.setattr(demo, "FLEET_HOURS", HOURS)
        path = demo.demo_database(folder / "cache", sample_data=folder / "sample", gpus=GPUS)
    with contextlib.closing(LocalStore(path)) as store:
        yield store


BEFORE = Scope(from_ms=END_MS - HOURS * HOUR_MS, to_ms=END_MS)


def test_the_demo_has_archived_hours_and_energy_as_they_were_written(small_demo, small_week):
    """With the teams of their jobs, and with steps whose events are not kept; and it balances."""
    archived = pl.read_parquet(small_week / "ledger.parquet")
    sums = archived.group_by("category").agg(pl.col("gpu_ms").sum())
    found = ledger(small_demo, scope=BEFORE).filter(pl.col("gpu_ms") > 0)

    assert capacity_ms(small_demo, BEFORE) == GPUS * HOURS * HOUR_MS
    assert dict(found.select("category", "gpu_ms").rows()) == dict(sums.rows())
    teams = small_demo.read("select distinct team from marts.ledger_scoped_by_node", scope=BEFORE)
    assert {"nlp", "vision"} <= set(teams["team"])
    steps = pl.col("category").is_in(["productive", "step_unsplit", "exposed_comm", "data_stall"])
    reported = small_demo.read("select reported_ms from marts.evidence_ladder", scope=BEFORE)
    assert reported.item() >= sums.filter(steps)["gpu_ms"].sum() > 0
    sql = f"select * from marts.statement_energy_hourly where hour_ms < {END_MS}"
    energy = pl.read_parquet(small_week / "energy.parquet").rows()
    assert sorted(small_demo.read(sql).rows(), key=str) == sorted(energy, key=str)
    assert check(small_demo)["violations"].sum() == 0
    sql = "select bool_and(what_to_do like '%longer known') from marts.findings where {}"
    assert small_demo.read(sql.format("rule = 'rank_skew'"), scope=BEFORE).item()


def test_the_days_compare_with_the_archived_hours_before(small_demo):
    days = Scope(cluster="atlas", from_ms=END_MS, to_ms=END_MS + HOURS * HOUR_MS)

    (windows,) = like_for_like.windows(days, small_demo.read("from marts.clusters"))

    assert windows.left_out == ()
    (pair,) = windows.pairs
    assert [capacity_ms(small_demo, side) for side in pair] == [GPUS * HOURS * HOUR_MS] * 2
