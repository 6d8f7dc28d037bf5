"""Rules of several kinds stay quiet on a healthy fleet, and their marts have common columns."""

import polars as pl
import pytest
from tests.queries import made_up_fleet

from goodput_ingest.synthetic import plans
from goodput_queries.catalog import rules


@pytest.fixture(
    scope="module", params=[101, pytest.param(102, marks=pytest.mark.machine)]
)  # fmt: skip
def healthy(request, new_store, tmp_path_factory):
    """Give a fleet whose jobs train to their end, without outages and holes in the readings."""
    store = new_store()
    made_up_fleet.load(store, tmp_path_factory.mktemp("healthy"), request.param, plans.quiet)
    yield store
    store.close()


def test_a_healthy_fleet_works_for_a_third_of_the_time(healthy):
    held = healthy.read("select count(*) from intermediate.int_held_bins").item()

    assert held > 64 * 6 * 6 / 3


@pytest.mark.parametrize("mart", rules.families())
def test_nothing_is_found_in_a_healthy_fleet(healthy, mart):
    assert healthy.read(f"select rule, evidence from marts.{mart}").rows() == []


KINDS = {
    "varchar": pl.String, "timestamp": pl.Datetime("us"), "bigint": pl.Int64, "double": pl.Float64
}  # fmt: skip
COLUMNS = {"rule": "varchar", **rules.REQUIRED, **rules.SUBJECT}


@pytest.mark.parametrize("mart", rules.families())
def test_each_has_rule_subject_time_cost_and_evidence(evidence, mart):
    found = evidence.store.read(f"select * from marts.{mart}").schema

    assert {name: found.get(name) for name in COLUMNS} == {
        name: KINDS[kind] for name, kind in COLUMNS.items()
    }
