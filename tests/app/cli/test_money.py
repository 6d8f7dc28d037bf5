"""Money is written with its currency and the decimals of that currency, everywhere."""

from decimal import Decimal

import polars as pl
import pytest

from goodput_app.cli import output
from goodput_app.dashboard.components import tables
from goodput_app.settings import Settings
from goodput_app.text import units
from goodput_billing.render.wording import amounts
from goodput_billing.statement.amounts import currency, rows
from goodput_billing.statement.settings import StatementSettings


@pytest.fixture
def site(monkeypatch):
    """Give what sets the currency of the site."""

    def use(code):
        found = Settings(statement=StatementSettings(currency=code))
        for module in (units, output):
            monkeypatch.setattr(module, "settings", lambda: found)

    return use


@pytest.mark.parametrize(
    ("code", "amount", "least", "price"),
    [
        ("USD", "$1,234.50", "<$0.01", "$2.1200"),
        ("EUR", "€1,234.50", "<€0.01", "€2.1200"),
        ("JPY", "¥1,234", "<¥1", "¥2.12"),
        ("KWD", "KWD\u00a01,234.500", "<KWD\u00a00.001", "KWD\u00a02.12000"),
    ],
)
def test_a_screen_writes_amounts_as_the_currency_has_them(site, code, amount, least, price):
    site(code)

    assert units.cost(1234.5) == amount
    assert units.cost(0.0001) == least
    assert units.price(2.12) == price


def test_a_table_names_the_currency_of_amounts_and_prices(site):
    site("JPY")
    frame = pl.DataFrame({"cost": [1234.0], "price_per_gpu_h": [2.0]})
    names = {"cost": "Cost", "price_per_gpu_h": "Price"}

    wide = {"price_per_gpu_h": tables.price_column("Price")}
    _, shown = tables.shaped(frame, names, wide)

    assert (shown["cost"]["label"], shown["cost"]["type_config"]["format"]) == (
        "Cost (JPY)",
        "%,.0f",
    )
    of_price = shown["price_per_gpu_h"]
    assert (of_price["label"], of_price["type_config"]["format"]) == ("Price (JPY)", "%,.2f")


def test_a_command_shows_the_currency_beside_columns_of_money(site):
    site("JPY")

    shown = output.with_currency(pl.DataFrame({"cost": [1.0], "lost_cost": [2.0], "node": ["a"]}))

    assert shown.columns == ["cost", "lost_cost", "currency", "node"]
    assert output.cell("lost_cost", 1234.4) == "1,234"


def test_a_statement_writes_the_decimals_of_its_currency():
    assert [amounts(code)(Decimal("1234.50")) for code in ("USD", "JPY", "BHD")] == [
        "1,234.50", "1,234", "1,234.500",
    ]  # fmt: skip


def test_amounts_without_hundredths_are_billed_whole_and_add_up():
    exact = pl.DataFrame(
        [dict.fromkeys(("line", "cluster"), "") | {"direct_cost": Decimal("0.40"),
                                                   "idle_share_cost": Decimal(0)}] * 5,
        schema=rows.SCHEMA,
    )  # fmt: skip

    billed = rows.in_cents(exact, smallest=currency.smallest_cents("JPY"))

    assert billed["total_cost"].sum() == 2
    assert all(amount == int(amount) for amount in billed["total_cost"])
