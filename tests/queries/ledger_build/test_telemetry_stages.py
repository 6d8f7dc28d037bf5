"""Stages of readings are built in the one transaction of a build, in passes of bounded size."""

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build, stored

from goodput_queries.catalog import models
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import build as ledger_build
from goodput_queries.ledger_build import materialise, watermarks


@pytest.fixture
def evidence(evidence):
    """Return a cluster of a GPU that was read for 20 minutes, built."""
    evidence.node("a", 1)
    evidence.samples("a#0", range(0, 1200, 10), lambda _: True)
    evidence.build()
    return evidence


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


STEPS = [
    (watermarks, "note_reading_series"),
    (materialise, "replace_hours"),
    (ledger_build, "place_again"),
    (materialise, "merge"),
]


def test_a_build_that_fails_at_any_step_changes_nothing(evidence, monkeypatch):
    before, series = stored(evidence), reading_series(evidence)
    evidence.samples("a#0", range(1200, 1500, 10), lambda _: False)
    for module, step in STEPS:
        with monkeypatch.context() as patch:
            patch.setattr(module, step, refuse)
            with pytest.raises(BuildError, match="it cannot be made"):
                evidence.build()
        assert reading_series(evidence) == series, step
    after = stored(evidence)
    assert [name for name, rows in before.items() if not rows.equals(after[name])] == []

    assert_equals_full_build(evidence)
