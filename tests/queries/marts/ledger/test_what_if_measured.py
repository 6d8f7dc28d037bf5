"""What scenarios know from a site's own ledger, each value with the view it comes from."""

from decimal import Decimal

import pytest
from tests.queries.conftest import START_MS, built_once, durable, each, phase, shown_by, steps
from tests.queries.loaders import steady

from goodput_queries.scope import EVERYTHING, Scope
from goodput_scenarios.measured import EVERY_MODEL, choices, measured

HOUR_S = 3_600


def number(given):
    """Return a value that is known exactly."""
    assert given.kind == "measured"
    assert given.span.lo == given.span.hi
    return float(given.span.lo)


def a_node(evidence):
    """Load four H100 over 10 hours, two of them held for 5, one measured all the time."""
    evidence.node("n", 4, watched=10 * HOUR_S)
    evidence.job("1", 0, 5 * HOUR_S, ["n"], 2, partition="batch")
    evidence.energy(evidence.gpu("n#0"), steady(10 * HOUR_S, 500))


@built_once
def priced(node):
    """Give the node with a price, a factor and a tariff."""
    a_node(node)
    node.add("rates", price_per_gpu_h=Decimal(2), cluster=None)
    node.add("rate_factors", partition="batch", factor=Decimal("0.5"), cluster=None)
    node.tariff("0.1", "1.5", cluster=None)


def of(cluster, scenario, choice):
    """Return what a scenario knows of a cluster."""
    return measured(cluster.store, scenario, Scope(cluster=cluster.name), choice)


UNKNOWN = ("price_per_kwh", "power_limit_w", "cost_per_productive_gpu_h")
test_what_is_known = shown_by({
    "without rates, tariffs and limits they are not known": (
        a_node, lambda c: [name in of(c, "upgrade", "h100") for name in ("old_power_w", *UNKNOWN)],
        [True, False, False, False]),
    "unclassified time is no part of a loss": (
        lambda c: [c.node("n", 2), c.job("quiet", 0, 3600, ["n"], 1),
                   c.job("unseen", 0, 3600, ["n"], 1),
                   c.samples("n#0", c.every(-10, 3600), lambda _: False)],
        lambda c: number(of(c, "halve-a-loss", "idle_held")["lost_gpu_h"]), pytest.approx(1)),
})  # fmt: skip

LAST_HOURS = Scope(START_MS + 5 * HOUR_S * 1000, START_MS + 10 * HOUR_S * 1000)


# what it shows: the world, scenario, scope and choice, what is known
@each({
    "a model by count, power, use and price": (
        "priced", "upgrade", EVERYTHING, "h100",
        {"old_gpus": 4, "old_power_w": 500, "price_per_kwh": 0.15, "held_ratio": 10 / 40}),
    "a window by its own hours alone": (
        "priced", "upgrade", LAST_HOURS, EVERY_MODEL, {"old_gpus": 4, "held_ratio": 0}),
    "idle GPUs as a loss that slows no job": (
        "priced", "halve-a-loss", EVERYTHING, "idle_no_demand",
        {"lost_gpu_h": 30, "in_jobs_gpu_h": 0}),
    "a loss by its time": (
        "saving", "halve-a-loss", EVERYTHING, "checkpoint_save",
        {"lost_gpu_h": 2 * 10 * 30 / HOUR_S, "in_jobs_gpu_h": 2 * 10 * 30 / HOUR_S,
         "capacity_gpu_h": 4, "held_gpu_h": 4, "window_h": 2, "price_per_gpu_h": 2}),
})  # fmt: skip
def test_what_is_known_of_a_choice(request, world, scenario, scope, choice, expected):
    store = request.getfixturevalue(world).store
    known = measured(store, scenario, scope, choice)

    assert scope != EVERYTHING or choice in choices(store, scenario, scope)
    assert {name: number(known[name]) for name in expected} == pytest.approx(expected, abs=1e-6)
    assert choice != "h100" or known["old_power_w"].source.startswith("marts.gpu_models: ")


def test_use_has_the_bounds_of_what_is_not_settled(priced):
    """Models are offered largest first, and runs where they save."""
    assert measured(priced.store, "upgrade", EVERYTHING, "B200") == {}
    assert list(choices(priced.store, "upgrade", EVERYTHING)) == ["h100", EVERY_MODEL]
    assert choices(priced.store, "checkpoints", EVERYTHING) == {}
    known = measured(priced.store, "upgrade", EVERYTHING, "h100")

    # the job said nothing: one GPU was seen busy, of the other nothing is known
    assert float(known["use_ratio"].span.lo) == 0
    assert float(known["use_ratio"].span.hi) == pytest.approx(0.25)
    assert "cost_per_productive_gpu_h" not in known


@built_once
def saving(evidence):
    """Give a run of two GPUs that saves for 30 s each 10 minutes and fails once in two hours."""
    evidence.node("n", 2, watched=2 * HOUR_S)
    evidence.job("1", 0, 2 * HOUR_S, ["n"], 2)
    for cycle in range(10):
        attempt, first = cycle // 5, 60 * cycle
        begin = attempt * HOUR_S + 630 * (cycle % 5)
        saved = [phase("ckpt_save", begin + 600, begin + 630), durable(first + 59, begin + 630)]
        evidence.events("1", [*steps(first, first + 59, begin), *saved], attempt=attempt)
    evidence.add("rates", price_per_gpu_h=Decimal(2), cluster=None)


def test_a_run_is_known_by_its_own_saves_and_failures(saving):
    (run,) = choices(saving.store, "checkpoints", EVERYTHING)
    known = measured(saving.store, "checkpoints", EVERYTHING, run)

    expected = {"save_s": 30, "interval_s": 600, "gpus": 2, "mtbf_s": 2 * HOUR_S,
                "price_per_gpu_h": 2}  # fmt: skip
    assert {name: number(known[name]) for name in expected} == expected
    assert "1 failure in 2.0 h; few, so a rough figure" in known["mtbf_s"].source


@pytest.mark.parametrize("has_failure", [True, False])
def test_a_run_that_has_not_failed_reckons_with_the_platforms_failures(cluster, has_failure):
    """One node failure in 8 x 5 + 2 x 10 GPU-h, or none; the run has 2 GPUs."""
    cluster.node("n", 2)
    cluster.node("m", 8, watched=10 * HOUR_S)
    cluster.job("1", 0, 10 * HOUR_S, ["n"], 2)
    reported = [phase("ckpt_save", begin, begin + 30) for begin in (600, 1200, 1800)]
    cluster.events("1", [*steps(0, 59, 0), *reported])
    cluster.job("2", 0, 5 * HOUR_S, ["m"], 8, state="NODE_FAIL" if has_failure else "COMPLETED")
    yield
    known = of(cluster, "checkpoints", f"{cluster.name}/1")
    assert number(known["interval_s"]) == 570
    if not has_failure:
        assert "mtbf_s" not in known
        return
    assert number(known["mtbf_s"]) == 30 * HOUR_S
    assert "it has not failed in 10.0 h; the platform ended 1 attempts" in known["mtbf_s"].source
