"""Prices that a site writes."""

from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.rates import Rates
from goodput_queries.errors import IngestError


def read(folder, text):
    file = folder / "rates.csv"
    file.write_text(text)
    (batch,) = Rates(file, ReadOptions()).extract()
    return batch


def test_a_new_price_replaces_the_old_one_of_the_same_hour(tmp_path, store):
    file = tmp_path / "rates.csv"
    for price in ("2.00", "3.00"):
        file.write_text(f"price_per_gpu_h\n{price}\n")
        ingest(store, "rates", [file], ReadOptions())

    assert store.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal("3.000000"),)]


@pytest.mark.parametrize("price", ["0", "2", "2.5", "1e3", "999999999999.999999", "2.50000000"])
def test_prices_from_zero_on_are_taken(tmp_path, price):
    batch = read(tmp_path, f"price_per_gpu_h\n{price}\n")

    assert batch.rows["price_per_gpu_h"].to_list() == [Decimal(price)]


def test_an_unknown_column_is_refused(tmp_path):
    with pytest.raises(
        IngestError, match="'price' is not known; the columns are cluster, gpu_model"
    ):
        read(tmp_path, "price_per_gpu_h,price\n1,1\n")


def test_a_price_may_hold_in_one_cluster_alone(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("cluster,gpu_model,price_per_gpu_h\neast,H100,2.85\n,H100,3\n")

    (batch,) = Rates(file, ReadOptions(cluster="west")).extract()

    assert batch.rows["cluster"].to_list() == ["east", "west"]


def test_a_factor_is_kept_beside_the_prices(tmp_path, store):
    file = tmp_path / "rates.csv"
    file.write_text("qos,price_per_gpu_h,factor\n,2,\nscavenger,,0.4\n")

    ingest(store, "auto", [file], ReadOptions())

    assert store.read("select qos, price_per_gpu_h from raw.rates").rows() == [
        (None, Decimal("2.000000"))
    ]
    assert store.read("select qos, factor from raw.rate_factors").rows() == [
        ("scavenger", Decimal("0.400000"))
    ]


def test_a_gpu_that_was_bought_costs_its_share_of_an_hour_it_can_be_expected_to_work(tmp_path):
    header = "purchase_cost,life_h,availability_ratio,overhead_cost_per_gpu_h"

    batch = read(tmp_path, f"{header}\n30000,35040,0.95,0.35\n")

    # 30,000 / (35,040 x 0.95) + 0.35
    assert batch.rows["price_per_gpu_h"].to_list() == [Decimal("1.251226")]


def test_a_row_with_a_price_and_a_factor_is_rejected(tmp_path):
    batch = read(tmp_path, "price_per_gpu_h,factor\n2,0.5\n")

    assert "this has price_per_gpu_h and factor" in batch.rejects[0].reason


@settings(max_examples=80, deadline=None)
@given(price=st.decimals(min_value=0, max_value=10**11, places=6))
def test_any_price_comes_out_as_it_went_in(price, tmp_path_factory):
    batch = read(tmp_path_factory.mktemp("rates"), f"price_per_gpu_h\n{price}\n")

    assert batch.rows["price_per_gpu_h"].to_list() == [price]


def test_columns_by_their_former_names_are_read(tmp_path, store):
    path = tmp_path / "rates.csv"
    path.write_text("cluster,usd_per_gpu_h\neast,2.5\n")

    ingest(store, "auto", [path], ReadOptions())

    assert store.read("select price_per_gpu_h from raw.rates").item() == Decimal("2.5")


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-01-01T00:00Z", None, "2026-01-01T00:00:00"),
        ("2026-01-01 01:00+01:00", None, "2026-01-01T00:00:00"),
        ("2026-01-01", "Europe/Berlin", "2025-12-31T23:00:00"),
        ("2026-07-01T02:00", "Europe/Berlin", "2026-07-01T00:00:00"),
    ],
)
def test_a_time_may_lack_its_seconds(tmp_path, text, zone, expected):
    file = tmp_path / "rates.csv"
    file.write_text(f"price_per_gpu_h,valid_from\n3,{text}\n")
    (batch,) = Rates(file, ReadOptions(zone=ZoneInfo(zone) if zone else None)).extract()

    assert [at.isoformat() for at in batch.rows["valid_from_at"]] == [expected]
