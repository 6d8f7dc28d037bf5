"""How far a reading covers back hangs on its own series around it, and on nothing else."""

import pytest


def held(evidence, *nodes, until=7200):
    """Put one GPU in each node, held from the start."""
    for number, node in enumerate(nodes):
        evidence.node(node, 1)
        evidence.job(str(number), 0, until, [node], 1)


def by_node(evidence):
    """Build and return GPU-seconds by node and category."""
    evidence.store.build()
    rows = evidence.store.read(
        "select node, category, sum(gpu_ms)::bigint // 1000 from marts.ledger_hourly group by all"
    )
    return {(node, category): gpu_s for node, category, gpu_s in rows.rows()}


def test_a_slow_series_keeps_its_interval_beside_a_fast_one(evidence):
    held(evidence, "slow", "fast")
    evidence.samples("slow#0", evidence.every(-60, 7200, 60), lambda _: False)
    evidence.samples("fast#0", evidence.every(-10, 7200, 10), lambda _: True)

    assert by_node(evidence) == {("slow", "idle_held"): 7200, ("fast", "busy_unclassified"): 7200}


def test_one_reading_after_a_hole_covers_no_more_than_its_series_interval(evidence):
    held(evidence, "a", until=4200)
    evidence.samples("a#0", [*evidence.every(-10, 3600), 4000], lambda _: True)

    # the only distance that ends in the second hour is the hole itself
    assert by_node(evidence) == {("a", "busy_unclassified"): 3600 + 25, ("a", "unknown"): 600 - 25}


def test_the_first_reading_after_an_hour_without_one_covers_back_into_it(evidence):
    held(evidence, "a", until=7400)
    evidence.samples(
        "a#0", [*evidence.every(-60, 3000, 60), *evidence.every(7220, 7400, 60)], lambda _: True
    )

    assert by_node(evidence) == {
        ("a", "busy_unclassified"): 3000 + 150 + 180,
        ("a", "unknown"): 4400 - 150 - 180,
    }


@pytest.mark.slow
def test_readings_that_come_bit_by_bit_have_the_intervals_of_all_at_once(new_evidence):
    moments = [*range(0, 3300, 60), *range(3550, 3700, 10), 6900, 7210, *range(7300, 9000, 30)]
    found = []
    for builds in (False, True):
        evidence = new_evidence()
        evidence.node("a", 2)
        for first in range(0, 9000, 700):
            part = [second for second in moments if first <= second < first + 700]
            evidence.samples("a#0", part, lambda _: True)
            if builds:
                evidence.store.build()
        evidence.store.build()
        tables = ("int_sample_intervals", "int_gpu_activity")
        found.append([sorted(evidence.store.read(f"from intermediate.{t}").rows()) for t in tables])

    assert found[0] == found[1]
