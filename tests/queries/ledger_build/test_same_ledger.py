"""However the evidence of a fleet arrives, the ledger is the same: in slices, shuffled, threads."""

from datetime import timedelta

import polars as pl
import pytest
from tests.evidence_over_time import (
    START,
    assert_same,
    load,
    made_up_evidence,
    reported_until,
    stored_stages,
)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory, new_store):
    """Return the raw rows of 64 GPUs and four hours, by table."""
    store = new_store()
    found = made_up_evidence(tmp_path_factory.mktemp("fleet"), store, gpus=64, hours=4)
    store.close()
    return found


@pytest.fixture(scope="module")
def whole(evidence, new_store):
    """Return the stages of a build of everything at once."""
    store = new_store()
    for name, rows in evidence.items():
        load(store, name, rows, "whole")
    store.build()
    yield stored_stages(store)
    store.close()


@pytest.mark.slow
def test_a_fleet_that_is_watched_live_has_the_ledger_of_one_read_at_the_end(
    new_store, evidence, whole
):
    store = new_store()
    moments = [START + timedelta(minutes=m) for m in (3, 62, 70, 118, 181, 186)]
    for moment in moments:
        for name, rows in reported_until(evidence, moment).items():
            load(store, name, rows, moment)
        store.build()
    for name, rows in evidence.items():
        load(store, name, rows, "whole")
    store.build()

    assert_same(stored_stages(store), whole)
    store.close()


@pytest.mark.machine
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_in_any_order_and_number_of_slices_give_the_same_ledger(
    new_store, evidence, whole, threads
):
    store = new_store(threads)
    for part in range(3):
        names = list(evidence)
        for name in names[part:] + names[:part]:
            rows = evidence[name]
            shuffled = rows.sample(fraction=1, shuffle=True, seed=11)
            load(store, name, shuffled.gather_every(3, part), part)
        store.build()

    assert_same(stored_stages(store), whole)
    store.close()


@pytest.mark.machine
def test_events_that_name_only_their_host_find_the_cluster_that_is_reported_later(
    new_store, evidence
):
    events = evidence["job_events"].with_columns(cluster=pl.lit(None, pl.String))
    others = {name: rows for name, rows in evidence.items() if name != "job_events"}
    ledgers = []
    for is_late in (True, False):
        store = new_store()
        if is_late:
            load(store, "job_events", events, "first")
            store.build()
        for name, rows in others.items():
            load(store, name, rows, "whole")
        load(store, "job_events", events, "last")
        store.build()
        ledgers.append(stored_stages(store))
        store.close()

    assert_same(*ledgers)
    assert not ledgers[0]["intermediate.int_train_steps"].is_empty()
