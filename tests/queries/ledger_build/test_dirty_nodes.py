"""From which time a node is placed again, and what else becomes dirty by it."""

import pytest

from goodput_queries.ledger_build.placement.dirty_nodes import (
    Since,
    add_before_named,
    add_made_up,
    add_spread,
)
from goodput_queries.ledger_build.placement.evidence import Claim, JobRun, Phase, Slot

NODE, OTHER = ("c", "a"), ("c", "b")
GPU = ("gpu", "")
DIRTY_FROM = 100


def dirty(*nodes):
    return Since(dict.fromkeys(nodes or (NODE,), DIRTY_FROM))


def held(start, end, phase, key="old"):
    return Claim(key, start, end, "assumed", phase, start)


def job_run(*nodes):
    return JobRun("old", "c", ("1", 0), 150, 200, nodes, 2, None, 150)


def slots(*claims):
    """Return the node with a GPU for each claim."""
    return {NODE: [Slot(f"gpu{n}", "", n, None, claims=[c]) for n, c in enumerate(claims)]}


def since_named(*, named, assumed):
    """Return since when the node is dirty where a claim by name is new beside an assumed one."""
    since = dirty()
    stored = [(NODE, GPU, held(*assumed, Phase.ASSUMED))]
    add_before_named(since, slots(held(*named, Phase.NAMED, "new")), stored)
    return since.by_node[NODE]


@pytest.mark.parametrize(("named", "assumed", "since"),
                         [((120, 150), (90, 130), 90), ((120, 150), (90, 500), 90),
                          ((120, 150), (90, 120), DIRTY_FROM), ((50, 80), (80, 95), DIRTY_FROM),
                          ((120, 150), (90, 110), DIRTY_FROM)],
                         ids=["overlaps its begin", "lasts over it", "ends with its begin",
                              "begins with its end", "at another time"])  # fmt: skip
def test_a_node_is_dirty_from_an_assumed_job_run_that_overlaps_a_new_claim_by_name(
    named, assumed, since
):
    assert since_named(named=named, assumed=assumed) == since


@pytest.mark.parametrize(("start", "end", "phase", "since"),
                         [(50, DIRTY_FROM + 1, Phase.SPREAD, 50),
                          (50, DIRTY_FROM, Phase.SPREAD, DIRTY_FROM),
                          (50, 60, Phase.SPREAD, DIRTY_FROM), (50, 200, Phase.ASSUMED, DIRTY_FROM)],
                         ids=["spread, there then", "spread, ended then", "spread, ended before",
                              "of one node"])  # fmt: skip
def test_a_spread_job_run_that_was_there_when_the_node_became_dirty_is_placed_again(
    start, end, phase, since
):
    found = dirty()
    add_spread(found, [], {}, [(NODE, GPU, held(start, end, phase))])
    assert found.by_node[NODE] == since


@pytest.mark.parametrize(
    ("has_it", "since_ms"), [(True, DIRTY_FROM), (False, 90)], ids=["as it was", "gone"]
)
def test_a_claim_by_name_that_was_there_before_makes_the_node_dirty_once_it_has_gone(
    has_it, since_ms
):
    since, named = dirty(), held(120, 150, Phase.NAMED)
    stored = [(NODE, ("gpu0", ""), named), (NODE, GPU, held(90, 130, Phase.ASSUMED))]

    add_before_named(since, slots(*([named] if has_it else [])), stored)

    assert since.by_node == {NODE: since_ms}


def test_all_nodes_of_a_spread_job_run_become_dirty_from_its_start():
    since = dirty()

    add_spread(since, [job_run("a", "b")], slots(held(150, 200, Phase.SPREAD)), [])

    assert since.by_node == {NODE: DIRTY_FROM, OTHER: 150}


def test_a_node_whose_slots_are_made_up_is_dirty_from_the_first_job_run_on():
    since = dirty()

    add_made_up(since, [], {NODE})

    assert since.by_node == {NODE: 0}


def test_all_nodes_of_a_job_run_on_made_up_slots_become_dirty_from_its_start():
    since = dirty()

    add_made_up(since, [job_run("b", "f"), job_run("d", "e")], {OTHER, ("c", "elsewhere")})

    assert since.by_node == {NODE: DIRTY_FROM, OTHER: 0, ("c", "f"): 150}
