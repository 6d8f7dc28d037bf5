"""Real Slurm accounting: against sreport, each record's own arithmetic, and its statement."""

import csv
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.external_data import EXTERNAL, reading

from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.scope import Scope

pytestmark = reading(EXTERNAL)
RELEASES = {"22.05.8": "goodlab", "24.11.5": "goodlab24"}
# when the MIG node joined: sreport's capacity counts its 5 instances for 891 of 1,026 s
JOINED = {"22.05.8": "2026-11-20T11:45:09+00:00"}


def read(store, release, folder):
    vectors = EXTERNAL / "slurm" / release
    options = ReadOptions(cluster=RELEASES[release], zone=ZoneInfo("UTC"))
    files = [
        "final/scontrol_node_o.txt",
        "final/sacctmgr_event_default.psv",
        "final/sacct_core_X_D_unit_separator.txt",
        "final/scontrol_job_d_o.txt",
        "running/scontrol_job_d_running.txt",
    ]
    ingest(store, "slurm", [vectors / f for f in files if (vectors / f).exists()], options)
    inventory, rates = folder / "inventory.csv", folder / "rates.csv"
    joined = JOINED.get(release, "")
    inventory.write_text(f'node,gpus,mig,valid_from\nmig01,1,"1g.10gb:4,3g.40gb:1",{joined}\n')
    ingest(store, "inventory", [inventory], options)
    rates.write_text("gpu_model,price_per_gpu_h\nh100,2.85\na100,1.20\n")
    ingest(store, "rates", [rates], ReadOptions())
    store.build()
    return store


@pytest.fixture(scope="module")
def stores(module_store, tmp_path_factory):
    """Give a database of each release, built."""
    folder = tmp_path_factory.mktemp
    return {release: read(module_store(), release, folder(release)) for release in RELEASES}


def test_the_ledger_and_the_reconciliation_give_the_published_figures(stores):
    store = stores["22.05.8"]
    at = (datetime(2026, 11, 20, *of, tzinfo=UTC) for of in ((11, 42, 54), (12,)))
    scope = Scope(*(int(moment.timestamp() * 1000) for moment in at))

    units = "held_gpu_s, capacity_gpu_s, down_gpu_s, drained_gpu_s"
    found = store.read(f"select {units} from marts.scheduler_reconciliation", scope=scope)
    assert found.rows() == [(5013, 45495, 3192, 424)]
    times = "capacity_ms, held_ms, unavailable_ms"
    found = store.read(f"select {times} from marts.goodput_summary", scope=scope)
    assert found.rows() == [(41_931_000, 5_001_571, 3_616_000)]


@pytest.mark.parametrize("release", RELEASES)
def test_each_record_holds_what_its_own_arithmetic_says(stores, release):
    rows = stores[release].read(
        """select runs.job_id, runs.submit_ms // 1000,
            coalesce(sum(segments.end_ms - segments.start_ms), 0) / 1000.0
        from staging.stg_job_runs as runs
        left join marts.ledger_pieces as segments using (job_run_key)
        group by runs.job_run_key, runs.job_id, runs.submit_ms"""
    )
    held = {(job, submit): seconds for job, submit, seconds in rows.rows()}
    with (EXTERNAL / "slurm" / f"expected_gpu_seconds_{release}.csv").open() as file:
        expected = {}
        for row in csv.DictReader(file):
            key = row["jobid"], int(row["submit_epoch"])
            expected[key] = expected.get(key, 0) + float(row["held_gpu_s"])

    assert {key: held.get(key) for key in expected} == expected


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_checks_are_clean(stores, release):
    found = check(stores[release])

    assert found.filter(found["violations"] > 0).rows() == []


def test_a_suspended_job_keeps_its_gpus(stores):
    """Job 16 ran 22 s, 15 of them suspended: all 22 are held."""
    of_job = "from marts.ledger_scoped where job_id = '16' group by all"
    rows = stores["22.05.8"].read(f"select category, sum(gpu_ms)::bigint {of_job}").rows()

    assert dict(rows) == {"suspended": 15_000, "unknown": 7_000}


@pytest.fixture(scope="module", params=RELEASES)
def made(request, stores):
    """Give the statement of the day of a release."""
    settings = StatementSettings(idle_policy="proportional")
    return statement(stores[request.param], date(2026, 11, 20), settings)


def test_the_statement_is_the_ledger_is_the_capacity(made):
    (row,) = made.balance.to_dicts()

    assert row["statement_ms"] == row["ledger_ms"] == row["capacity_ms"]
    assert row["held_ms"] == row["ledger_held_ms"]


def test_what_sets_it_apart_from_the_scheduler_is_named_to_the_millisecond(made):
    (row,) = made.balance.to_dicts()

    apart = row["scheduler_held_ms"] - row["held_ms"]

    assert sum(made.differences["gpu_ms"]) == apart
    assert "not explained" not in made.differences["reason"].to_list()
    assert "MIG instances count by their slices" in made.differences["reason"].to_list()


def test_it_charges_every_priced_hour_at_its_price(made):
    priced = made.rows.filter(pl.col("price_per_gpu_h").is_not_null())
    cost = sum((row["gpu_ms"] * row["price_per_gpu_h"] / 3_600_000
                for row in priced.iter_rows(named=True)), Decimal(0))  # fmt: skip

    assert abs(made.total_cost - cost) <= Decimal("0.005")
    assert sum(made.accounts["total_cost"]) == made.total_cost
