"""The Cost page: at what price, who may write one, and what if."""

import pytest
from tests.app.opened_page import plain, table, texts, tile


def test_prices_are_shown_with_where_they_come_from_and_how_to_change_them(priced, cost):
    app = cost(priced, part="prices")

    (row,) = table(app, "price_per_gpu_h", "valid_from").to_dicts()
    assert (row["price_per_gpu_h"], row["note"], row["valid_from"]) == (
        2.0, "contract 4711", "always",
    )  # fmt: skip
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


def test_fewer_newer_gpus_save_what_the_formula_says(priced, cost):
    app = cost(
        priced, part="what-if", ask="upgrade", old_gpus="100", old_power_w="700", new_gpus="50",
        new_power_w="1000", price_per_kwh="0.12",
    )  # fmt: skip

    assert tile(app, "Energy saved a year") == "175,200 kWh"
    assert tile(app, "Electricity saved a year") == "$21,024"
    assert "20\\.00 kW x 8,760 h \\= 175,200 kWh" in texts(app)
    assert tile(app, "Payback") == "not known"
    (asked_for,) = (info.value for info in app.info if "Input needed" in info.value)
    assert "Work of a new GPU" in asked_for
    assert "New GPUs" not in asked_for


def test_a_wrong_value_in_the_link_is_reported_and_left_out(priced, cost):
    app = cost(priced, part="what-if", ask="upgrade", new_gpus="fifty", old_gpus="-1")

    assert "'fifty' is not a number" in plain(app)
    assert "is -1, expected 1 to 1000000 GPUs" in plain(app)
    assert tile(app, "Energy saved a year") == "not known"


@pytest.mark.parametrize("ask", ["halve-a-loss", "checkpoints", "power-cap"])
def test_every_question_is_there_with_what_is_known(priced, cost, ask):
    app = cost(priced, part="what-if", ask=ask)

    assert any("Input needed" in info.value for info in app.info)
    assert app.metric
