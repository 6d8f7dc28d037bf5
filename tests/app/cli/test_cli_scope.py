"""Filters of a command by names as people give them, and `goodput what-if`."""

import contextlib
import json

import pytest
from tests.app.command_line import failing, run
from tests.app.cost_page import SACCT, cost_file
from tests.tables import each

from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

AT = "2026-11-19T"
ACCOUNTING = SACCT.splitlines()[0] + "".join(
    f"\n{cluster}|{job}|{job}|ann|nlp|gpu|COMPLETED|{AT}08:00:00|{AT}08:00:00|{AT}08:00:00|"
    f"{AT}09:00:00|1|{cluster}{job}|gres/gpu=1|{name}"
    for cluster, job, name in (("c", 1, "main"), ("c", 2, "eval"), ("d", 1, "main"))
)


@pytest.fixture(scope="module")
def database(filled):
    """Give two clusters with a run `main` each, and one with a run `eval`."""
    return cost_file(filled, {}, ACCOUNTING)


@pytest.fixture
def store(database):
    with contextlib.closing(LocalStore(database)) as opened:
        yield opened


def asked(database, *arguments):
    return run(*arguments, "--db", str(database))


@each(
    {
        "a unique name": (Scope(run="eval"), Scope(run="c/2")),
        "its key": (Scope(run="c/2"), Scope(run="c/2")),
        "its job": (Scope(run="2"), Scope(run="c/2")),
        "one of a cluster": (Scope(run="main", cluster="d"), Scope(run="d/1", cluster="d")),
    }
)
def test_a_name_of_a_run_is_that_run(store, given, found):
    assert resolved(store, given) == found


@each(
    (Scope(run="main"), "run main is ambiguous: c/1, d/1. Give one of these."),
    (Scope(node="c1", cluster="d"), "The ledger knows no node c1 in cluster d."),
)
def test_an_ambiguous_name_lists_its_candidates_and_one_of_another_cluster_is_unknown(
    store, given, sentence
):
    with pytest.raises(QueryError) as caught:
        resolved(store, given)

    assert str(caught.value) == sentence


@each(("halve-a-loss", "--run"), ("upgrade", "--node"), ("upgrade", "--team"))
def test_what_if_refuses_a_filter_that_it_has_no_use_for(database, scenario, option):
    said = failing("what-if", scenario, option, "nlp", "--db", str(database), code=2)

    assert f"{scenario} is computed for whole clusters: {option} does not apply" in said


def test_a_limit_of_0_is_no_limit(database, monkeypatch):
    monkeypatch.setattr("goodput_app.cli.output.TABLE_ROWS", 1)

    cut, whole = (
        asked(database, "runs", *limit).stdout.splitlines() for limit in ([], ["--limit", "0"])
    )

    assert (len(cut), len(whole)) == (2, 4)
    rows = json.loads(asked(database, "runs", "--limit", "0", "--format", "json").stdout)
    assert len(rows) == 3


ONE_JOB = SACCT.splitlines()[0] + (
    f"\nc|1|1|ann|nlp|gpu|COMPLETED|{AT}07:00:00|{AT}07:00:00|{AT}08:00:00|{AT}14:00:00|1|a|"
    "gres/gpu=4|train"
)
SITE = {
    "rates": "price_per_gpu_h\n2\n",
    "inventory": f"cluster,node,gpus,valid_from\nc,a,4,{AT}07:00Z\n",
    "node-states": f"cluster,node,state,start,end\nc,a,up,{AT}07:00Z,{AT}20:00Z\n",
}


@pytest.fixture(scope="module")
def one_job(filled):
    """Give a database of one job of four GPUs at 2 dollars, without telemetry or tariff.

    The GPUs are up and free for an hour before it, while it waits, and for six after it.
    """
    return cost_file(filled, SITE, ONE_JOB)


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
    one_job,
):
    result = asked(one_job, "what-if", *UPGRADE)

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


def test_what_the_ledger_knows_bears_its_view(one_job):
    found = rows(asked(one_job, "what-if", "power-cap", "--format", "json"))

    assert found["held_ratio"]["low"] == pytest.approx(24 / 52)
    assert found["held_ratio"]["basis"].startswith("marts.gpu_models: ")


@each(
    ("gremlins", "--of 'gremlins' is not available here; there is: "),
    ("throttled", "--of 'throttled': there is none of it in this range; there is"),
)
def test_a_subject_that_is_not_there_is_named_with_those_that_are(one_job, subject, said):
    found = failing("what-if", "halve-a-loss", "--of", subject, "--db", str(one_job))

    assert found.startswith(said)


def test_idle_time_without_demand_is_the_last_loss_to_halve(one_job):
    largest = asked(one_job, "what-if", "halve-a-loss")
    named = asked(one_job, "what-if", "halve-a-loss", "--of", "Idle, no demand", "--format", "json")

    assert "Of: Idle with demand." in largest.stderr
    assert rows(named)["lost_gpu_h"]["low"] == 24


@each(
    (["upgrade", "--set", "use_ratio=2"], "Share of GPU time that is useful is 2"),
    (["upgrade", "--set", "colour=2"],
     "'colour' is not a value of upgrade, expected of: old_gpus"),
    (["upgrade", "--set", "new_gpus"], "'new_gpus' is not like new_gpus=50."),
    (["upgrade", "--set", "new_gpus=nan"], "New GPUs is NaN"),
)  # fmt: skip
def test_a_wrong_value_is_a_usage_error(one_job, arguments, words):
    assert words in failing("what-if", *arguments, "--db", str(one_job), code=2)


def test_answers_are_in_the_sites_currency(one_job, configured):
    configured('[statement]\ncurrency = "EUR"\n')

    for name in ("halve-a-loss", "power-cap"):
        found = asked(one_job, "what-if", name, "--format", "json", *EVERYTHING_GIVEN.get(name, ()))
        texts = [f"{row['unit']} {row['basis']} {row['worked']}" for row in rows(found).values()]
        assert any("EUR" in text for text in texts), name
        assert not any("USD" in text for text in texts), name
