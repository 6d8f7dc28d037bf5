"""Electricity tariffs and budgets that a site writes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.site.budgets import Budgets
from goodput_ingest.sources.site.tariffs import Tariffs

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.evidence.batch import Batch
    from goodput_queries.storage.store import LocalStore


def tariffs(folder: Path, text: str, zone: str | None = None) -> Batch:
    file = folder / "tariffs.csv"
    file.write_text(text)
    options = ReadOptions(zone=None if zone is None else ZoneInfo(zone))
    (batch,) = Tariffs(file, options).extract()
    return batch


def test_a_tariff_holds_for_hours_of_the_day_in_its_zone(tmp_path: Path, store: LocalStore) -> None:
    file = tmp_path / "tariffs.csv"
    file.write_text(
        "cluster,zone,from_hour,to_hour,price_per_kwh,pue,server_ratio\n"
        "east,America/New_York,22,6,0.08,1.4,1.25\n"
    )
    assert recognise(file) is Tariffs

    ingest(store, "auto", [file], ReadOptions())

    (row,) = store.read("select * from raw.tariffs").to_dicts()
    assert (row["zone"], row["from_hour"], row["to_hour"]) == ("America/New_York", 22, 6)
    assert (row["price_per_kwh"], row["pue"]) == (Decimal("0.080000"), Decimal("1.400000"))


def test_without_hours_a_tariff_holds_all_day_and_adds_nothing(tmp_path: Path) -> None:
    row = tariffs(tmp_path, "price_per_kwh\n0.15\n").rows.row(0, named=True)

    assert (row["from_hour"], row["to_hour"], row["pue"], row["server_ratio"]) == (0, 24, 1, 1)


def test_hours_are_in_the_named_zone_of_the_command_where_the_row_has_none(tmp_path: Path) -> None:
    batch = tariffs(tmp_path, "from_hour,to_hour,price_per_kwh\n6,22,0.15\n", "Europe/Berlin")

    assert batch.rows["zone"].to_list() == ["Europe/Berlin"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("6,22,,0.15,", "hours of the day need a zone"),
        ("24,6,UTC,0.15,", "is not an hour from 0 to 23"),
        ("6,6,UTC,0.15,", "are both 6"),
        ("x,6,UTC,0.15,", "is not an hour"),
        ("6,22,Mars/Base,0.15,", "there is no time zone 'Mars/Base'"),
        (",,,-1,", "is not an amount"),
        (",,,,1.2", "is not a number"),
        (",,,0.15,0.9", "is not a ratio from 1 to 100"),
    ],
)
def test_a_row_that_is_no_tariff_is_rejected(tmp_path: Path, row: str, expected: str) -> None:
    batch = tariffs(tmp_path, f"from_hour,to_hour,zone,price_per_kwh,pue\n{row}\n")

    assert batch.rows.is_empty()
    assert expected in batch.rejects[0].reason


def test_a_budget_is_for_an_account(tmp_path: Path, store: LocalStore) -> None:
    file = tmp_path / "budgets.csv"
    file.write_text("cluster,account,cost_per_month,quota_gpus\n,nlp,120000.50,\neast,nlp,,64\n")
    assert recognise(file) is Budgets

    ingest(store, "auto", [file], ReadOptions())

    found = store.read(
        "select cluster, cost_per_month, quota_gpus from raw.budgets order by cluster nulls first"
    )
    assert found.rows() == [(None, Decimal("120000.50"), None), ("east", None, Decimal(64))]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (",100,", "it names no account"),
        ("nlp,,", "neither cost_per_month nor quota_gpus"),
        ("nlp,1.005,", "more than 2 decimals"),
        ("nlp,-1,", "is not an amount"),
    ],
)
def test_a_row_that_is_no_budget_is_rejected(tmp_path: Path, row: str, expected: str) -> None:
    file = tmp_path / "budgets.csv"
    file.write_text(f"account,cost_per_month,quota_gpus\n{row}\n")

    (batch,) = Budgets(file, ReadOptions()).extract()

    assert batch.rows.is_empty()
    assert expected in batch.rejects[0].reason


def test_a_row_may_name_its_currency(tmp_path: Path) -> None:
    batch = tariffs(tmp_path, "price_per_kwh,currency\n0.1,EUR\n0.2,\n0.3,euro\n")

    assert batch.rows["currency"].to_list() == ["EUR", None]
    assert [reject.reason for reject in batch.rejects] == [
        "tariffs: line 4: currency 'euro' is not an ISO 4217 code like EUR."
    ]
