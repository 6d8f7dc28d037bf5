"""Stages that a build skips, since the tables in their header are empty."""

from decimal import Decimal

import pytest
from tests.queries.conftest import Evidence, durable, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build, stored
from tests.recorded_session import built

from goodput_queries.catalog import models
from goodput_queries.ledger_build import materialise
from goodput_queries.ledger_build.build import _Build

PARTS = (
    "sacct.txt",
    pytest.param("nvml.jsonl.gz", marks=pytest.mark.machine),
    "job_events.jsonl.gz",
    "nccl_inspector/main",
)


@pytest.mark.parametrize("part", PARTS)
def test_a_build_that_skips_nothing_gives_the_same_ledger(
    part, empty_database, tmp_path_factory, monkeypatch
):
    for store in built(empty_database, tmp_path_factory, part):
        skipping = stored(Evidence(store))
        monkeypatch.setattr(_Build, "_has_rows", lambda *_: True)
        monkeypatch.setattr(materialise, "has_rows", lambda *_: True)
        store.build(is_full=True)

        computed = stored(Evidence(store))

        assert [name for name in computed if not computed[name].equals(skipping[name])] == []


STAGES = {  # of the tables that are emptied, all at once
    "raw.rates": "intermediate.int_prices",
    "raw.node_states": "intermediate.int_node_states",
    "raw.gpu_instances": "intermediate.int_gpu_instances",
}


def test_a_stage_whose_sources_have_no_rows_any_more_has_none(evidence):
    evidence.node("a", 1)
    evidence.watched(1000)
    evidence.add("rates", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.add("gpu_instances", gpu_uuid="a#0", gpu_instance="1", profile="1g", compute_slices=1)
    evidence.store.build()
    before = [evidence.store.read(f"from {stage}").height for stage in STAGES.values()]
    with evidence.store.writing() as cursor:
        for table in STAGES:
            cursor.execute(f"delete from {table}")
    evidence.node("b", 1)

    assert_equals_full_build(evidence)

    assert all(before)
    assert [evidence.store.read(f"from {stage}").height for stage in STAGES.values()] == [0] * 3


def test_attempts_keep_no_rows_of_what_their_events_no_longer_show(evidence):
    """Of attempts that are computed again, the rows of a stage that is skipped are removed."""
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.events("1", [{**step, "loss": 1.0} for step in steps(1, 50, 0)])
    evidence.store.build()
    before = evidence.store.read("from intermediate.int_step_losses")
    with evidence.store.writing() as cursor:
        cursor.execute("update raw.job_events set loss = null")
    evidence.events("1", [durable(50, 600)])

    assert_equals_full_build(evidence)

    assert len(before) == 50
    assert evidence.store.read("from intermediate.int_step_losses").is_empty()


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
