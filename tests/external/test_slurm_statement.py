"""Statements of real Slurm accounting: statement = ledger = scheduler, differences named."""

from datetime import date
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.external_data import EXTERNAL, reading

from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(EXTERNAL)
WHEN = date(2026, 11, 20)


RELEASES = {"22.05.8": "goodlab", "24.11.5": "goodlab24"}


@pytest.fixture(scope="module", params=RELEASES)
def made(request, new_store, tmp_path_factory):
    store, tmp_path = new_store(), tmp_path_factory.mktemp("made")
    vectors = EXTERNAL / "slurm" / request.param
    options = ReadOptions(cluster=RELEASES[request.param], zone=ZoneInfo("UTC"))
    files = [
        "final/scontrol_node_o.txt",
        "final/sacctmgr_event_default.psv",
        "final/sacct_core_X_D_unit_separator.txt",
        "final/scontrol_job_d_o.txt",
    ]
    ingest(store, "slurm", [vectors / f for f in files if (vectors / f).exists()], options)
    inventory = tmp_path / "inventory.csv"
    inventory.write_text('node,gpus,mig\nmig01,1,"1g.10gb:4,3g.40gb:1"\n')
    ingest(store, "inventory", [inventory], options)
    rates = tmp_path / "rates.csv"
    rates.write_text("gpu_model,price_per_gpu_h\nh100,2.85\na100,1.20\n")
    ingest(store, "rates", [rates], ReadOptions())
    store.build()
    yield statement(store, WHEN, StatementSettings(idle_policy="proportional"))
    store.close()


@pytest.mark.slow
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
    cost = sum(
        (
            row["gpu_ms"] * row["price_per_gpu_h"] / 3_600_000
            for row in priced.iter_rows(named=True)
        ),
        Decimal(0),
    )

    assert abs(made.total_cost - cost) <= Decimal("0.005")
    assert sum(made.accounts["total_cost"]) == made.total_cost
