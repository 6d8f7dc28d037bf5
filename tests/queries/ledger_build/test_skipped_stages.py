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


TABLES = ("raw.rates", "raw.node_states", "raw.gpu_instances")  # emptied all at once
STAGES = [
    f"intermediate.int_{name}" for name in ("prices", "node_states", "gpu_instances", "step_losses")
]


def test_what_a_stage_has_no_sources_for_any_more_goes_from_it(evidence):
    """Of attempts that are computed again, the rows of a skipped stage are removed, too."""
    evidence.node("a", 1)
    evidence.watched(1000)
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
