"""A run stands beside the latest run of its workload and size that began before it."""

import pytest
from tests.queries.conftest import steps

from goodput_app.dashboard.components.runs import run_before
from goodput_app.dashboard.data import speed
from goodput_app.process.store import use_store
from goodput_queries.scope import Scope


@pytest.fixture(scope="module")
def world(made):
    for node in ("a", "b"):
        made.node(node, 2)
    for job, start, gpus in [("1", 0, 2), ("2", 200, 2), ("3", 400, 1), ("4", 600, 2)]:
        made.job(job, start, start + 100, ["a"], gpus, job_name="llm")
        made.events(job, steps(1, 9, start, 5.0), host="a")
    made.job("5", 100, 150, ["b"], 2, job_name="other")
    made.watched(3_600)
    made.store.build()
    return made.store


def key(store, job):
    return store.read("select run_key from marts.runs where run_id = $1", [job]).item()


@pytest.mark.parametrize(
    ("job", "before"), [("4", "2"), ("2", "1"), ("1", None), ("3", None), ("5", None)],
    ids=["the latest, not of another size", "the first", "none before", "other size", "other name"],
)  # fmt: skip
def test_the_run_before_is_of_the_same_workload_and_size(world, job, before):
    use_store(world)

    found = speed.run_before(Scope(run=key(world, job)))

    assert found == (None if before is None else key(world, before))


@pytest.mark.parametrize(
    ("step_s", "before_s", "said"),
    [
        (1.0, 1.2, "20.0 % faster"),
        (1.25, 1.0, "20.0 % slower"),
        (1.0, 1.005, "Same speed"),
        (None, 1.0, "Which is faster is not known: no steps"),
    ],
)
def test_the_verdict_is_about_the_speed_of_steps(step_s, before_s, said):
    assert run_before.verdict(step_s, before_s) == said


def test_the_page_of_a_run_has_both_runs_side_by_side(world, visit):
    app = visit(world, "one_run", run=key(world, "4"))

    (table,) = (html.proto.body for html in app.get("html") if "gp-before" in html.proto.body)
    assert "<th>this run</th><th>llm (2)</th>" in table
    assert "<td>Median step</td><td>5 s</td><td>5 s</td>" in table
