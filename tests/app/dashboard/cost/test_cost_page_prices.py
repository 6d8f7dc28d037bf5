"""The Cost page: at what price, and who may write one."""

import pytest
from tests.app.opened_page import plain, table, texts


def test_prices_are_shown_with_where_they_come_from_and_how_to_change_them(priced, cost):
    app = cost(priced, part="prices")

    (row,) = table(app, "price_per_gpu_h", "valid_from").to_dicts()
    assert (row["price_per_gpu_h"], row["note"], row["valid_from"]) == (
        2.0,
        "contract 4711",
        "always",
    )
    commands = [code.value for code in app.code if code.value.startswith("goodput ingest")]
    assert [command.split()[2] for command in commands] == ["rates", "tariffs", "budgets"]
    assert "No tariff is known" in texts(app)
    assert not app.text_area, "nobody writes prices unless the settings let them"
    assert "edit_prices = true" in texts(app)


@pytest.fixture
def may_edit(configured):
    """Let people write prices on the page."""
    configured("[ui]\nedit_prices = true\n")


def _written(app, text):
    """Write lines of the rate card on the page and read them in."""
    app.text_area(key="lines_rates").set_value(text)
    (button,) = (b for b in app.button if b.label == "Imported" and "edit_rates" in str(b.proto))
    return button.click().run()


@pytest.mark.usefixtures("may_edit")
def test_a_price_written_on_the_page_is_charged_from_its_hour_on(editable, cost):
    app = _written(
        cost(editable, part="prices"), "price_per_gpu_h,valid_from\n3,2026-11-20T00:00:00Z\n"
    )

    assert not app.exception, app.exception
    assert [said.value for said in app.success] == [
        "1 row of rates imported; figures follow in a few seconds."
    ]
    editable.build()
    paid = table(cost(editable), "label", "allocated_cost").filter(label="nlp")["total_cost"].item()
    assert paid == 48 + 3
    origins = table(cost(editable, part="prices"), "table_name", "origin")["origin"]
    assert origins[0].startswith("Cost page, ")


@pytest.mark.usefixtures("may_edit")
def test_a_wrong_line_changes_nothing(editable, cost):
    app = cost(editable, part="prices")
    for text, words in (
        ("price_per_gpu_h\n3\nfree\n", "Nothing was imported"),
        ("colour\nred\n", "colour"),
        ("price_per_gpu_h\n", "no line below the header"),
    ):
        app = _written(app, text)
        assert words in plain(app), text

    assert editable.read("select price_per_gpu_h from raw.rates")["price_per_gpu_h"].to_list() == [
        2
    ]
