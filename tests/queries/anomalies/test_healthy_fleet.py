"""Rules stay quiet on a made-up fleet in which nothing goes wrong, and speak of what does."""

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


@pytest.fixture(scope="module")
def eventful(empty_database, tmp_path_factory, new_store):
    """Give a fleet with a job of every kind of loss."""
    store = new_store(copy_of=made_up_fleet.eventful(empty_database, tmp_path_factory)[1])
    yield store
    store.close()


def test_a_healthy_fleet_works_for_a_third_of_the_time(healthy):
    held = healthy.read("select count(*) from intermediate.int_held_bins").item()

    assert held > 64 * 6 * 6 / 3


@pytest.mark.parametrize("mart", rules.families())
def test_nothing_is_found_in_a_healthy_fleet(healthy, mart):
    assert healthy.read(f"select rule, evidence from marts.{mart}").rows() == []


def runs(store, mart, rule):
    sql = f"select distinct job_name from marts.{mart} where rule = $1"
    return set(store.read(sql, [rule])["job_name"])


def test_stories_of_the_fleet_are_found(eventful):
    assert "periodic-gaps-d1" in runs(eventful, "periodic_gaps", "periodic_gaps")
    assert "unused-allocation-d1" in runs(eventful, "low_use", "unused_gpus")
    assert "jupyter" in runs(eventful, "low_use", "low_use")


def test_the_period_of_the_story_is_that_of_its_saves(eventful):
    row = eventful.read(
        "select coincides, gpus, confidence from marts.periodic_gaps "
        "where job_name = 'periodic-gaps-d1'"
    ).row(0)

    assert row == ("Checkpoint save", 8, "Likely")


def test_a_gpu_that_its_job_does_not_use_differs_from_its_gang(eventful):
    found = eventful.read("select rule, gpu_uuid from marts.peer_outliers")
    unused = eventful.read("select distinct gpu_uuid from marts.idle_gaps where is_beside_work")

    of_gpus = found.drop_nulls("gpu_uuid")
    assert set(of_gpus["rule"]) == {"peer_sm_active"}
    assert set(of_gpus["gpu_uuid"]) == set(unused["gpu_uuid"])


def test_only_a_node_whose_gpus_throttle_is_hot(eventful):
    found = eventful.read("select node from marts.peer_outliers where rule = 'node_temperature'")
    throttled = eventful.read("select distinct node from marts.throttle_episodes")

    assert set(found["node"]) == set(throttled["node"])


def test_nodes_without_readings_are_found(eventful):
    found = eventful.read("select rule, evidence from marts.silent_gpus")

    assert set(found["rule"]) == {"silent_node"}
