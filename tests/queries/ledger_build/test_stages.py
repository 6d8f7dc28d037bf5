"""Stages: built in one transaction, in passes of bounded size, skipped where there is nothing."""

from decimal import Decimal
from unittest.mock import Mock

import pytest
from tests.queries.conftest import Evidence, built_file, copy_of, durable, each, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build, stored
from tests.recorded_session import built

from goodput_queries.catalog import models
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import build as ledger_build
from goodput_queries.ledger_build import materialise, passes, watermarks
from goodput_queries.ledger_build.build import _Build


@built_file
def built_gpu(evidence):
    """Give a cluster of a GPU that was read for 20 minutes."""
    evidence.node("a", 1)
    evidence.samples("a#0", range(0, 1200, 10), lambda _: True)


evidence = copy_of("built_gpu")


def reading_series(evidence):
    return sorted(evidence.store.read("from state.reading_series").rows())


def test_stages_that_share_temporary_tables_are_built_in_one_pass():
    stages = models.of_layer("intermediate")
    for name in ("int_sample_intervals", "int_gpu_activity"):
        together = [model.name for model in models.of_the_same_pass(stages[name])]
        assert together == ["int_sample_intervals", "int_gpu_activity"]
    assert models.of_the_same_pass(stages["int_node_energy"]) == [stages["int_node_energy"]]


@each({
    "into passes of an hour": {
        (materialise, "PASS_MAX_GPU_HOURS"): 1, (materialise, "LEDGER_PASS_MAX_GPU_HOURS"): 1},
    "into parts of a hundred readings": {(passes, "READINGS_OF_A_PART"): 100},
})  # fmt: skip
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


@pytest.mark.parametrize("counter", [range(3600, 4800, 60), range(9600, 10800, 60)],
                         ids=["stops", "begins"])  # fmt: skip
def test_power_is_integrated_to_the_hour_of_a_counter_in_whatever_build(evidence, counter):
    fixed = {"source": "nvml", "gpu_uuid": "c/a#0", "gpu_instance": "", "is_flagged": False}
    for begin, end in ((3600, 8400), (8400, 10800)):
        rows = [{"ts": s, "energy_j": 9.0 if s - 10 in counter else None, "power_w": 500.0}
                for s in range(begin + 10, end, 60)]  # fmt: skip
        evidence.add("gpu_samples", *rows, **fixed)
        evidence.build()

    assert_equals_full_build(evidence)


STEPS = [(watermarks, "note_reading_series"), (materialise, "replace_hours"),
         (ledger_build, "place_again"), (materialise, "merge")]  # fmt: skip


def test_a_build_that_fails_at_any_step_changes_nothing(evidence, monkeypatch):
    before, series = stored(evidence), reading_series(evidence)
    evidence.samples("a#0", range(1200, 1500, 10), lambda _: False)
    for module, step in STEPS:
        with monkeypatch.context() as patch:
            patch.setattr(module, step, Mock(side_effect=BuildError("it cannot be made")))
            with pytest.raises(BuildError, match="it cannot be made"):
                evidence.build()
        assert reading_series(evidence) == series, step
    after = stored(evidence)
    assert [name for name, rows in before.items() if not rows.equals(after[name])] == []

    assert_equals_full_build(evidence)


PARTS = ("sacct.txt", pytest.param("nvml.jsonl.gz", marks=pytest.mark.machine),
         "job_events.jsonl.gz")  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_a_build_that_skips_nothing_gives_the_same_ledger(part, filled, own_store, monkeypatch):
    store = own_store(copy_of=built(filled, part))
    skipping = stored(Evidence(store))
    monkeypatch.setattr(_Build, "_has_rows", lambda *_: True)
    monkeypatch.setattr(materialise, "has_rows", lambda *_: True)
    store.build(is_full=True)

    computed = stored(Evidence(store))

    assert [name for name in computed if not computed[name].equals(skipping[name])] == []


TABLES = ("raw.rates", "raw.node_states", "raw.gpu_instances")  # emptied all at once
KINDS = ("prices", "node_states", "gpu_instances", "step_losses")
STAGES = [f"intermediate.int_{kind}" for kind in KINDS]


def test_what_a_stage_has_no_sources_for_any_more_goes_from_it(evidence):
    """Of attempts that are computed again, the rows of a skipped stage are removed, too."""
    evidence.node("a", 1, watched=1000)
    evidence.add("rates", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.add("gpu_instances", gpu_uuid="a#0", gpu_instance="1", profile="1g", compute_slices=1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.events("1", [{**step, "loss": 1.0} for step in steps(1, 50, 0)])
    evidence.store.build()
    before = [evidence.store.read(f"from {stage}").height for stage in STAGES]
    with evidence.store.writing() as cursor:
        for table in TABLES:
            cursor.execute(f"delete from {table}")
        cursor.execute("update raw.job_events set loss = null")
    evidence.node("b", 1)
    evidence.events("1", [durable(50, 600)])

    assert_equals_full_build(evidence)

    assert all(before)
    assert [evidence.store.read(f"from {stage}").height for stage in STAGES] == [0] * 4


def test_a_stage_is_made_after_what_it_is_skipped_by():
    order = models.build_order()
    place = {model.qualified_name: number for number, model in enumerate(order)}
    before = [
        (model.qualified_name, table)
        for model in order
        for table in models.tables_read(", ".join(model.sources))
        if table.split(".")[0] in models.BUILT_LAYERS
        # temp.int_x is a draft of int_x
        and place.get(table, place.get(table.replace("temp.", "intermediate."), len(order)))
        >= place[model.qualified_name]
    ]

    assert before == []
