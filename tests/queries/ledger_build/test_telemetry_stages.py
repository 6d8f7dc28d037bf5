"""Stages of readings are built in the one transaction of a build, in passes of bounded size."""

import pytest
from tests.queries.conftest import Evidence
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build, stored

from goodput_queries.catalog import models
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import build as ledger_build
from goodput_queries.ledger_build import materialise, watermarks


@pytest.fixture
def evidence(new_store):
    made = Evidence(new_store())
    made.node("a", 1)
    made.samples("a#0", range(0, 1200, 10), lambda _: True)
    made.store.build()
    yield made
    made.store.close()


def reading_series(evidence):
    return sorted(evidence.store.read("from state.reading_series").rows())


def refuse(*_, **__):
    raise BuildError("it cannot be made")


def test_stages_that_share_temporary_tables_are_built_in_one_pass():
    stages = models.of_layer("intermediate")
    for name in ("int_sample_intervals", "int_gpu_activity"):
        together = [model.name for model in models.of_the_same_pass(stages[name])]
        assert together == ["int_sample_intervals", "int_gpu_activity"]
    assert models.of_the_same_pass(stages["int_node_energy"]) == [stages["int_node_energy"]]


def test_a_backlog_is_built_in_passes_of_bounded_size(evidence, monkeypatch):
    monkeypatch.setattr(materialise, "PASS_MAX_GPU_HOURS", 1)
    monkeypatch.setattr(materialise, "LEDGER_PASS_MAX_GPU_HOURS", 1)
    evidence.samples("a#0", range(1200, 7300, 10), lambda _: False)

    evidence.store.build()

    assert_equals_full_build(evidence)


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (watermarks, "note_reading_series"),
        (materialise, "replace_hours"),
        (ledger_build, "place_again"),
        (materialise, "merge"),
    ],
)
def test_a_build_that_fails_changes_nothing(evidence, monkeypatch, module, step):
    before = stored(evidence), reading_series(evidence)
    evidence.samples("a#0", range(1200, 1500, 10), lambda _: False)
    monkeypatch.setattr(module, step, refuse)

    with pytest.raises(BuildError, match="it cannot be made"):
        evidence.store.build()

    assert (stored(evidence), reading_series(evidence)) == before
    monkeypatch.undo()
    assert_equals_full_build(evidence)
