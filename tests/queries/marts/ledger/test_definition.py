"""What counts as useful and on which evidence, what has no place, figures of an old definition."""

from datetime import date

import pytest
from tests.queries.conftest import START_MS, built_file, copy_of, durable, phase, shown_by, steps
from tests.tables import each

from goodput_billing.render import files
from goodput_billing.statement import closing
from goodput_billing.statement.amounts.charges import DEFINITION_VERSION, Policy
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.scope import EVERYTHING, Scope

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
SETTINGS = StatementSettings(lateness_h=6)


@built_file
def built_measured(evidence):
    """Load two GPUs for 100 steps with a tenth of communication, then of an evaluation."""
    evidence.job_on_a_node("1", 0, 1100, 2, watched=60 * HOUR_S)
    evidence.events("1", [
        {"event": "job.start", "t": 0}, *steps(1, 100, 0, comm_s=1.0, straggler_s=0.0),
        phase("eval", 1000, 1100), durable(100, 1100),
    ])  # fmt: skip


measured = copy_of("built_measured")


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
    # a policy that names no definition was made by the first
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


MACROS = {
    "has_runtime(50, 110, 10)": True,  # of 100 allocated without a gang's wait 50 are settled
    "has_runtime(51, 110, 10)": False, "has_runtime(0, 10, 10)": False,
    "has_program(100, 50)": True, "has_program(100, 51)": False, "has_program(0, 0)": False,
    # of 90 allocated with evidence 9 were idle or waiting
    "active_ratio(9, 10, 100)": 0.9, "active_ratio(0, 100, 100)": None,
    "nvcre_goodput_ratio(110, 10, 10, 20, 30)": 0.4, "nvcre_goodput_ratio(10, 0, 10, 0, 0)": 0.0,
    "nvcre_goodput_ratio(110, 120, 10, 0, 0)": 0.0,
}  # fmt: skip


def test_ratios_are_of_what_is_settled_and_of_gpus_that_do_not_wait(shared_evidence):
    found = shared_evidence.read(f"select {', '.join(MACROS)}").row(0)
    assert dict(zip(MACROS, found, strict=True)) == MACROS


def unplaced(cluster, scope=EVERYTHING):
    """Return job, reason and GPU-seconds."""
    spent = "select job_id, reason, sum(gpu_ms) / 1000 from marts.unplaced group by all"
    return cluster.read(f"{spent} order by all", scope=scope).rows()


# what it shows: GPUs of a node and from when on they are listed; jobs (start, end, nodes, GPUs,
# more); what is unplaced of them
@each({
    "without a node list": (
        2, 0, [(0, 5000, [], 2, {}), (0, 1000, ["a"], 1, {})], [("0", "no_node_list", 10_000)]),
    # its start or end is in the hour that clocks repeat, and nothing settles which
    "its time came twice": (
        2, 0, [(0, 5000, ["a"], 2, {"is_time_ambiguous": True}), (0, 1000, ["a"], 1, {})],
        [("0", "ambiguous_time", 10_000)]),
    "beyond the GPUs of the node": (2, 0, [(0, 1000, ["a"], 3, {})], [("0", "no_such_gpu", 1000)]),
    "before the dates of the inventory": (
        1, 600, [(0, 1000, ["a"], 1, {})], [("0", "no_such_gpu", 600)]),
    "contested": (1, 0, [(0, 1000, ["a"], 1, {}), (900, 1500, ["a"], 1, {})], []),
})  # fmt: skip
def test_time_outside_the_ledger(cluster, gpus, listed_from, jobs, expected):
    uuid = f"GPU-{cluster.name}"
    slots = [{"gpu_uuid": f"{uuid}-{index}", "slurm_index": index} for index in range(gpus)]
    listed = {"node": "a", "gpu_model": "h100", "valid_from_at": listed_from}
    cluster.add("gpus", *slots, source="inventory", **listed)
    for number, (start, end, nodes, count, more) in enumerate(jobs):
        cluster.job(str(number), start, end, nodes, count, **more)
    yield
    assert unplaced(cluster) == expected


@each(("h100", "h100"), (None, "h100"), ("a100", "a100"))
def test_unplaced_time_has_its_part_of_a_window_and_its_price(cluster, kind, priced):
    cluster.node("a", 2, model="NVIDIA H100 80GB HBM3")
    cluster.add("rates", gpu_model=priced, price_per_gpu_h=3, valid_from_at=-86400)
    cluster.job("1", 0, 7200, [], 2, gpu_type=kind)
    yield
    costs = cluster.read("select sum(cost) from marts.unplaced")
    assert costs.item() == pytest.approx(12)
    scope = Scope(from_ms=START_MS + 1_000_000, to_ms=START_MS + 4_000_000)
    assert unplaced(cluster, scope) == [("1", "no_node_list", 6000)]


LADDER = "from marts.evidence_ladder"


def node_read(cluster):
    """Load a node of two GPUs, one at work, read for 1,000 s."""
    cluster.node("a", 2)
    cluster.samples("a#0", cluster.every(0, 1000), lambda _: True)
    cluster.samples("a#1", cluster.every(0, 1000), lambda _: False)


# what it shows: GPUs of the job runs, of which the first reports steps; rung, ratio and coverage,
# what the next step is about
@each({
    "attempts that report steps in half of the allocated time give goodput": (
        [2], True, ("goodput", 1.0, 1.0), None),
    "of jobs that report nothing it is the share of allocated time that was active": (
        [2], False, ("active_while_allocated", 0.5, 1.0), "five lines of Python"),
    "few attempts that report steps do not represent the rest": (
        [2, 6], True, ("active_while_allocated", None, 0.25), "it covers a part"),
    "without a scheduler the activity of GPUs is all there is": (
        [], False, ("gpu_activity", 0.5, 1.0), "scheduler"),
})  # fmt: skip
def test_rung_of_the_evidence(cluster, jobs, has_steps, expected, about):
    node_read(cluster)
    for number, gpus in enumerate(jobs):
        if number:
            cluster.node("b", gpus)
        cluster.job(str(number), 0, 1000, ["ab"[number]], gpus)
    if has_steps:
        cluster.events("0", [{"t": 0, "event": "job.start"}, *steps(1, 100, 0)])
    yield
    row = cluster.read(LADDER).row(0, named=True)
    assert (row["rung"], row["ratio"], row["coverage"]) == pytest.approx(expected)
    assert row["next_step"] is None if about is None else about in row["next_step"]
    if has_steps:  # filters finer than the cluster change no rung
        assert cluster.read(LADDER, Scope(team="other"))["rung"].item() == expected[0]


RATIOS = "availability_ratio, allocation_ratio, scheduling_ratio, scheduler_reason"
LATER = Scope(START_MS + 1_000_000, START_MS + 2_000_000)
test_availability_needs_node_states_or_accounting = shown_by({
    "without": (node_read, f"select {RATIOS} from marts.goodput_summary",
                [(None, None, None, "not measured (needs node states or accounting)")]),
    "telemetry without activity is asked for it": (
        lambda c: [c.job_on_a_node("1", 0, 1000, 1),
                   c.readings(c.gpu("a#0"), range(0, 1001, 10), power_w=300.0)],
        f"select right(next_step, 26) {LADDER}", [(": their telemetry has none",)]),
    "a window of minutes counts those minutes alone": (
        lambda c: [node_read(c), *(c.samples(gpu, c.every(1010, 2000), lambda _: True)
                                   for gpu in ("a#0", "a#1"))],
        lambda c: c.read(f"select ratio, capacity_ms {LADDER}", LATER).rows(), [(1, 2_000_000)]),
})  # fmt: skip
