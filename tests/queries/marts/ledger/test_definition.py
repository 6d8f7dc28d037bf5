"""What counts as useful, and figures of an earlier definition stay as they were."""

from datetime import date

import pytest
from tests.queries.conftest import Evidence, built_together, durable, phase, steps

from goodput_billing.render import files
from goodput_billing.statement import closing
from goodput_billing.statement.amounts.charges import DEFINITION_VERSION, Policy
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
SETTINGS = StatementSettings(lateness_h=6)


@pytest.fixture(scope="module")
def built_measured(new_store):
    """Load two GPUs for 100 steps with a tenth of communication, then of an evaluation."""
    evidence = Evidence(new_store())
    evidence.watched(60 * HOUR_S)
    evidence.job_on_a_node("1", 0, 1100, 2)
    evidence.events(
        "1",
        [
            {"event": "job.start", "t": 0},
            *steps(1, 100, 0, comm_s=1.0, straggler_s=0.0),
            phase("eval", 1000, 1100),
            durable(100, 1100),
        ],
    )
    return evidence.built()


@pytest.fixture
def measured(new_evidence, built_measured):
    return new_evidence(copy_of=built_measured)


def test_communication_is_useful_and_evaluation_is_not_unless_it_counts(measured):
    without = measured.summary()
    measured.store.variables["evaluation_counts"] = True
    counted = measured.summary()

    assert (without["useful_ms"], without["kept_step_ms"]) == (2_000_000, 2_000_000)
    assert (counted["useful_ms"], counted["kept_step_ms"]) == (2_200_000, 2_200_000)
    kinds = measured.store.read("select kind from marts.ledger_by_category where code = 'A7'")
    assert kinds.item() == "goodput"
    of_day = statement(measured.store, WHEN, SETTINGS)
    assert of_day.accounts["productive_ms"].sum() == 2_200_000


def test_a_day_that_was_closed_by_the_first_definition_keeps_it(measured):
    day = day_of(WHEN, SETTINGS)
    closing.close(measured.store, day, Policy(definition_version=1), day.to_ms)

    again = statement(measured.store, WHEN, SETTINGS)

    assert not again.was_corrected
    assert again.accounts["productive_ms"].sum() == 1_800_000
    assert files.table(again)["definition_version"].unique().to_list() == [1]


def test_a_policy_that_names_no_definition_was_made_by_the_first():
    old = '{"idle": "none", "credits_infra_failures": false, "currency": "USD", "quotas": []}'

    # nor did it decide about inferred time, which stays as it was closed
    assert closing.policy_of_text(old) == Policy(definition_version=1, charge_inferred=None)


def test_statements_trends_and_runs_carry_the_current_definition(measured):
    made = statement(measured.store, WHEN, SETTINGS)

    assert files.table(made)["definition_version"].unique().to_list() == [DEFINITION_VERSION]
    assert made.accounts["productive_ms"].sum() == 2_000_000
    for mart in ("ledger_over_time", "runs", "goodput_summary", "ledger_by_category"):
        found = measured.store.read(f"select distinct definition_version from marts.{mart}")
        assert found.item() == DEFINITION_VERSION


@built_together
def test_availability_needs_node_states_or_accounting(cluster):
    cluster.node("a", 1)
    cluster.samples("a#0", cluster.every(0, 600), lambda _: True)
    yield
    summary = cluster.summary()

    assert summary["availability_ratio"] is None
    assert summary["allocation_ratio"] is None
    assert summary["scheduling_ratio"] is None
    assert summary["scheduler_reason"] == "not measured (needs node states or accounting)"


@pytest.mark.parametrize(
    ("ratio", "is_measured"),
    [
        ("has_runtime(50, 110, 10)", True),  # of 100 allocated without a gang's wait 50 are settled
        ("has_runtime(51, 110, 10)", False),
        ("has_runtime(0, 10, 10)", False),
        ("has_program(100, 50)", True),
        ("has_program(100, 51)", False),
        ("has_program(0, 0)", False),
    ],
)
def test_a_ratio_is_measured_where_at_least_half_of_its_base_is_settled(
    shared_evidence, ratio, is_measured
):
    assert shared_evidence.read(f"select {ratio}").item() is is_measured


def test_idle_gpus_and_those_that_wait_for_a_gang_are_not_active(shared_evidence):
    # of 90 allocated with evidence 9 were idle or waiting
    assert shared_evidence.read("select active_ratio(9, 10, 100)").item() == pytest.approx(0.9)
    assert shared_evidence.read("select active_ratio(0, 100, 100)").item() is None
