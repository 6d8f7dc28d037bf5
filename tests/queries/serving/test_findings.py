"""Findings about serving engines in a window; what each rule finds are its cases."""

import pytest
from tests.queries.conftest import START_MS
from tests.queries.findings import given

from goodput_queries.scope import Scope


@pytest.fixture(scope="module")
def queue(shared_evidence):
    """Give two replicas, one of which has a queue in the first hour while the other is idle."""
    given.load(shared_evidence, given.cases("queue_beside_idle", "fires")[0]["given"])
    shared_evidence.build()
    return shared_evidence


@pytest.mark.parametrize(("from_s", "found"), [(0, 1), (given.HOUR + 60, 0)])
def test_a_queue_that_is_over_is_no_finding_of_a_later_window(queue, from_s, found):
    scope = Scope(START_MS + 1000 * from_s)
    sql = "select count(*) from marts.findings where rule = 'queue_beside_idle'"

    assert queue.read(sql, scope).item() == found
