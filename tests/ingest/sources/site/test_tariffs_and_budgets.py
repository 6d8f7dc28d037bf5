"""Electricity tariffs and budgets that a site writes."""

from decimal import Decimal
from zoneinfo import ZoneInfo

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.site.tariffs import Tariffs


def tariffs(folder, text, zone=None):
    file = folder / "tariffs.csv"
    file.write_text(text)
    options = ReadOptions(zone=None if zone is None else ZoneInfo(zone))
    (batch,) = Tariffs(file, options).extract()
    return batch


def test_a_tariff_holds_for_hours_of_the_day_in_its_zone(tmp_path, store):
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


def test_without_hours_a_tariff_holds_all_day_and_adds_nothing(tmp_path):
    row = tariffs(tmp_path, "price_per_kwh\n0.15\n").rows.row(0, named=True)

    assert (row["from_hour"], row["to_hour"], row["pue"], row["server_ratio"]) == (0, 24, 1, 1)


def test_hours_are_in_the_named_zone_of_the_command_where_the_row_has_none(tmp_path):
    batch = tariffs(tmp_path, "from_hour,to_hour,price_per_kwh\n6,22,0.15\n", "Europe/Berlin")

    assert batch.rows["zone"].to_list() == ["Europe/Berlin"]


def test_a_row_may_name_its_currency(tmp_path):
    batch = tariffs(tmp_path, "price_per_kwh,currency\n0.1,EUR\n0.2,\n0.3,euro\n")

    assert batch.rows["currency"].to_list() == ["EUR", None]
    assert [reject.reason for reject in batch.rejects] == [
        "tariffs: line 4: currency 'euro' is not an ISO 4217 code like EUR."
    ]
