"""What readings alone decide is made on another connection, while the stages of jobs are made."""

from __future__ import annotations

import threading

import pytest
from tests.queries.conftest import Evidence
from tests.queries.full_rebuild import assert_equals_full_build

from goodput_queries.catalog import models
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import aside, materialise
from goodput_queries.ledger_build.placement import scope
from goodput_queries.storage.store import LocalStore


@pytest.fixture
def evidence():
    made = Evidence(LocalStore())
    made.node("a", 1)
    made.samples("a#0", range(0, 1200, 10), lambda _: True)
    made.store.build()
    yield made
    made.store.close()


def more_readings(evidence):
    evidence.samples("a#0", range(1200, 1500, 10), lambda _: False)


def activity(evidence):
    return sorted(evidence.store.read("from intermediate.int_gpu_activity").rows())


def ledger(evidence):
    return sorted(evidence.store.read("from marts.ledger_segments").rows(), key=str)


def refuse(*_, **__):
    raise BuildError("it cannot be made")


def test_it_reads_nothing_that_a_build_decides_besides_itself():
    made_aside = {model.qualified_name for model in models.aside()}

    assert made_aside
    for name in made_aside:
        assert models.evidence(name)[1] <= made_aside


def test_nothing_else_is_asked_for_before_it_that_could_be_made_after_it():
    order = [model.qualified_name for model in models.build_order()]
    first = min(order.index(model.qualified_name) for model in models.aside())

    # what follows needs it, by itself or by what comes between
    needed = {model.qualified_name for model in models.aside()}
    for model in models.build_order()[first:]:
        assert model.is_aside or needed & (models.inputs(model) | model.reads), model.name
        needed.add(model.qualified_name)


def test_new_readings_are_made_on_another_thread(evidence, monkeypatch):
    threads = set()
    made = materialise.rows_of_hours
    monkeypatch.setattr(
        materialise,
        "rows_of_hours",
        lambda *given: (threads.add(threading.current_thread()), made(*given))[1],
    )
    more_readings(evidence)

    evidence.store.build()

    assert threads
    assert threading.current_thread() not in threads
    assert_equals_full_build(evidence)


def test_no_more_is_held_in_memory_than_one_pass_of_hours(evidence, monkeypatch):
    monkeypatch.setattr(aside, "making", refuse)
    monkeypatch.setattr(materialise, "PASS_MAX_GPU_HOURS", 1)
    evidence.samples("a#0", range(1200, 7300, 10), lambda _: False)

    evidence.store.build()

    assert_equals_full_build(evidence)


@pytest.mark.parametrize(
    ("module", "step"), [(materialise, "rows_of_hours"), (scope, "place_again")]
)
def test_what_fails_aside_or_beside_it_fails_the_build_which_changes_nothing(
    evidence, monkeypatch, module, step
):
    before = activity(evidence), ledger(evidence)
    more_readings(evidence)
    monkeypatch.setattr(module, step, refuse)

    with pytest.raises(BuildError, match="it cannot be made"):
        evidence.store.build()

    assert (activity(evidence), ledger(evidence)) == before
    monkeypatch.undo()
    assert_equals_full_build(evidence)
