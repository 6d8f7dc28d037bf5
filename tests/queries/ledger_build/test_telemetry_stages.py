"""Stages of readings are built in the one transaction of a build, in passes of bounded size."""

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build, stored

from goodput_queries.catalog import models
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import build as ledger_build
from goodput_queries.ledger_build import materialise, passes, watermarks


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


PARTED = {
    "into passes of an hour": {
        (materialise, "PASS_MAX_GPU_HOURS"): 1, (materialise, "LEDGER_PASS_MAX_GPU_HOURS"): 1,
    },
    "into parts of a hundred readings": {(passes, "READINGS_OF_A_PART"): 100},
}  # fmt: skip


@pytest.mark.parametrize("limits", PARTED.values(), ids=PARTED)
def test_it_does_not_matter_how_a_backlog_is_parted(evidence, monkeypatch, limits):
    with monkeypatch.context() as patch:
        for (module, name), most in limits.items():
            patch.setattr(module, name, most)
        evidence.samples("a#0", range(1200, 7300, 10), lambda second: second % 1000 < 400)
        evidence.store.build()

    assert_equals_full_build(evidence)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "backwards"])
def test_reading_oftener_later_changes_nothing_of_the_hour_before(evidence, order):
    """50 s pass at the turn of the hour."""
    slow = [*range(1200, 3600, 30), *range(3620, 4600, 30)]
    evidence.samples("a#0", slow[::order], lambda _: True)
    evidence.build()
    evidence.samples("a#0", [*range(4700, 7100, 5)][::order], lambda _: True)

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
