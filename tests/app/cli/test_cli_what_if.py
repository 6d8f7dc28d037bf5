"""`goodput what-if`: inputs and answers as rows, and what is asked for."""

import json

import pytest
from tests.app.command_line import run
from tests.app.cost_page import SACCT, cost_file

from goodput_app.settings import settings

AT = "2026-11-19T"
ACCOUNTING = SACCT.splitlines()[0] + (
    f"\nc|1|1|ann|nlp|gpu|COMPLETED|{AT}07:00:00|{AT}07:00:00|{AT}08:00:00|{AT}14:00:00|1|a|"
    "gres/gpu=4|train"
)
SITE = {
    "rates": "price_per_gpu_h\n2\n",
    "inventory": f"cluster,node,gpus,valid_from\nc,a,4,{AT}07:00Z\n",
    "node-states": f"cluster,node,state,start,end\nc,a,up,{AT}07:00Z,{AT}20:00Z\n",
}


@pytest.fixture(scope="module")
def database(empty_database, tmp_path_factory):
    """Give a database of one job of four GPUs at 2 dollars, without telemetry or tariff.

    The GPUs are up and free for an hour before it, while it waits, and for six after it.
    """
    return cost_file(empty_database, tmp_path_factory, SITE, ACCOUNTING)


def asked(database, *arguments):
    return run("what-if", *arguments, "--db", str(database))


def rows(result):
    """Return the rows of a JSON answer: inputs by name, answers by label."""
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return {row["label" if row["kind"] == "answer" else "name"]: row for row in found}


EVERYTHING_GIVEN = {"power-cap": ("--set", "price_per_kwh=0.1")}
UPGRADE = [
    "upgrade", "--format", "json", "--set", "old_gpus=100", "--set", "old_power_w=700",
    "--set", "new_gpus=50", "--set", "new_power_w=1000", "--set", "price_per_kwh=0.10",
]  # fmt: skip


def test_values_given_by_hand_answer_with_the_formula_and_what_nothing_reports_is_asked_for(
    database,
):
    result = asked(database, *UPGRADE)

    found = rows(result)
    assert found["old_gpus"]["kind"] == "given"
    energy = found["Energy saved a year"]
    assert (energy["low"], energy["high"], energy["unit"]) == (175_200, 175_200, "kWh")
    assert energy["worked"] == "20.00 kW x 8,760 h = 175,200 kWh"
    assert energy["basis"] == "(power before - power after) x 8,760 h"
    assert found["speed_up"]["kind"] == "unknown"
    assert found["speed_up"]["low"] is None
    assert found["Payback"]["low"] is None
    assert "--set speed_up=..." in result.stderr
    assert "--set old_gpus" not in result.stderr


def test_what_the_ledger_knows_bears_its_view(database):
    found = rows(asked(database, "power-cap", "--format", "json"))

    assert found["held_ratio"]["low"] == pytest.approx(24 / 52)
    assert found["held_ratio"]["basis"].startswith("marts.gpu_models: ")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("gremlins", "--of 'gremlins' is not available here; there is: "),
        ("throttled", "--of 'throttled': there is none of it in this range; there is"),
    ],
)
def test_a_subject_that_is_not_there_is_named_with_those_that_are(database, subject, said):
    result = asked(database, "halve-a-loss", "--of", subject)

    assert result.exit_code == 1
    assert result.stderr.startswith(said)


def test_idle_time_without_demand_is_the_last_loss_to_halve(database):
    largest = asked(database, "halve-a-loss")
    named = asked(database, "halve-a-loss", "--of", "Idle, no demand", "--format", "json")

    assert "Of: Idle with demand." in largest.stderr
    assert rows(named)["lost_gpu_h"]["low"] == 24


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["upgrade", "--set", "use_ratio=2"], "Share of GPU time that is useful is 2"),
        (["upgrade", "--set", "colour=2"],
         "'colour' is not a value of upgrade, expected of: old_gpus"),
        (["upgrade", "--set", "new_gpus"], "'new_gpus' is not like new_gpus=50."),
        (["upgrade", "--set", "new_gpus=nan"], "New GPUs is NaN"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_a_usage_error(database, arguments, words):
    result = asked(database, *arguments)

    assert result.exit_code == 2
    assert words in result.stderr


def test_answers_are_in_the_sites_currency(database, tmp_path, monkeypatch):
    (tmp_path / "goodput.toml").write_text('[statement]\ncurrency = "EUR"\n')
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()

    for name in ("halve-a-loss", "power-cap"):
        found = asked(database, name, "--format", "json", *EVERYTHING_GIVEN.get(name, ()))
        texts = [f"{row['unit']} {row['basis']} {row['worked']}" for row in rows(found).values()]
        assert any("EUR" in text for text in texts), name
        assert not any("USD" in text for text in texts), name
