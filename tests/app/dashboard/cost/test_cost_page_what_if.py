"""The Cost page: what if."""

import pytest
from tests.app.opened_page import plain, texts, tile


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
