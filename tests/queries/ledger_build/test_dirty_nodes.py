"""From which time a node is placed again, and what else becomes dirty by it."""

from tests.tables import each

from goodput_queries.ledger_build.placement import dirty_nodes
from goodput_queries.ledger_build.placement.evidence import Claim, JobRun, Phase, Slot

NODE, OTHER = ("c", "a"), ("c", "b")
GPU = ("gpu", "")
DIRTY_FROM = 100


def held(start, end, phase, key="old"):
    return Claim(key, start, end, "assumed", phase, start)


def job_run(*nodes):
    return JobRun("old", "c", ("1", 0), 150, 200, nodes, 2, None, 150)


def slots(*claims):
    """Return the node with a GPU for each claim."""
    return {NODE: [Slot(f"gpu{n}", "", n, None, claims=[c]) for n, c in enumerate(claims)]}


def named(new, assumed, before=()):
    """Return what adds a claim by name beside an assumed job run; before: names that were there."""
    stored = [*((NODE, ("gpu0", ""), held(*of, Phase.NAMED)) for of in before),
              (NODE, GPU, held(*assumed, Phase.ASSUMED))]  # fmt: skip
    key = "old" if before else "new"
    claims = [] if new is None else [held(*new, Phase.NAMED, key)]
    return lambda since: dirty_nodes.add_before_named(since, slots(*claims), stored)


def stored(start, end, phase):
    """Return what adds a job run that was placed on the node before."""
    return lambda since: dirty_nodes.add_spread(
        since, [], {}, [(NODE, GPU, held(start, end, phase))]
    )


THERE = [(120, 150)]


# what it shows: what is added to the node that is dirty from 100 on, since when which nodes are
@each({
    "an assumed job run whose begin a new claim by name overlaps": (
        named((120, 150), (90, 130)), {NODE: 90}),
    "one that it lasts over": (named((120, 150), (90, 500)), {NODE: 90}),
    "not one that ends with its begin": (named((120, 150), (90, 120)), {NODE: DIRTY_FROM}),
    "not one that begins with its end": (named((50, 80), (80, 95)), {NODE: DIRTY_FROM}),
    "not one at another time": (named((120, 150), (90, 110)), {NODE: DIRTY_FROM}),
    "nor beside a claim by name that is as it was": (
        named((120, 150), (90, 130), THERE), {NODE: DIRTY_FROM}),
    "one beside a claim by name that has gone": (named(None, (90, 130), THERE), {NODE: 90}),
    "a spread job run that was there then": (
        stored(50, DIRTY_FROM + 1, Phase.SPREAD), {NODE: 50}),
    "not one that ended then": (stored(50, DIRTY_FROM, Phase.SPREAD), {NODE: DIRTY_FROM}),
    "nor before": (stored(50, 60, Phase.SPREAD), {NODE: DIRTY_FROM}),
    "nor one of one node": (stored(50, 200, Phase.ASSUMED), {NODE: DIRTY_FROM}),
    "all nodes of a spread job run, from its start": (
        lambda since: dirty_nodes.add_spread(since, [job_run("a", "b")],
                                 slots(held(150, 200, Phase.SPREAD)), []),
        {NODE: DIRTY_FROM, OTHER: 150}),
    "a node of made-up slots, from the first job run on": (
        lambda since: dirty_nodes.add_made_up(since, [], {NODE}), {NODE: 0}),
    "all nodes of a job run on made-up slots, from its start": (
        lambda since: dirty_nodes.add_made_up(since, [job_run("b", "f"), job_run("d", "e")],
                                  {OTHER, ("c", "elsewhere")}),
        {NODE: DIRTY_FROM, OTHER: 0, ("c", "f"): 150}),
})  # fmt: skip
def test_nodes_are_dirty_from(add, expected):
    since = dirty_nodes.Since({NODE: DIRTY_FROM})
    add(since)
    assert since.by_node == expected
