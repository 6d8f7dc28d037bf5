"""A site that changes its zone or the beginning of its days bills no hour twice."""

import contextlib
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace as change

from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.errors import QueryError

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
IN_UTC = StatementSettings(lateness_h=0)


@pytest.fixture(scope="module")
def closed(shared_evidence):
    """Load two days and more; the first was closed in UTC."""
    evidence = shared_evidence
    evidence.node("a", 4)
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.watched(70 * HOUR_S)
    evidence.store.build()
    assert statement(evidence.store, WHEN, IN_UTC).is_closed
    return evidence.store


@pytest.mark.parametrize(
    "changed", [change(IN_UTC, zone="Europe/Berlin"), change(IN_UTC, day_starts_at="17:00")]
)
def test_a_day_with_billed_hours_is_refused_under_other_bounds(closed, changed):
    with pytest.raises(QueryError, match=r"2027-01-15 00:00 to 2027-01-16 00:00 UTC\) billed\."):
        statement(closed, WHEN, changed)

    of_it = "select count(*) from billing.statement_days where from_at::date <= $1"
    assert closed.read(of_it, [WHEN]).item() == 1


def test_from_a_day_on_that_begins_after_it_other_bounds_hold(closed, new_store):
    changed = change(IN_UTC, zone="America/New_York")
    with closed.cursor() as cursor:
        cursor.execute("checkpoint")
    with contextlib.closing(new_store(copy_of=Path(closed.path))) as own:
        made = statement(own, WHEN + timedelta(days=1), changed)

        assert made.is_closed
        assert statement(own, WHEN, IN_UTC).is_closed
