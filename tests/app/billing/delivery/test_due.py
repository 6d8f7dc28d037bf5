"""Which days are delivered when nobody names one."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.app.billing.conftest import past_statement

from goodput_billing.delivery.archive import Delivery
from goodput_billing.delivery.due import due_days, last_day
from goodput_billing.statement.settings import StatementSettings

UNTIL = date(2026, 11, 30)
AT = datetime(2026, 11, 20, 7, tzinfo=UTC)


def past(*days, is_closed=True):
    """Return an index of days before UNTIL, that the mail got."""
    mailed = (Delivery("mail", "0-a", AT, 1, delivered_at=AT),)
    dates = [UNTIL - timedelta(n) for n in days]
    return {d: past_statement(d, is_closed=is_closed, deliveries=mailed) for d in dates}


def due(index, *, asks_again=False):
    """Return which days before UNTIL are due for the mail."""
    return [(UNTIL - when).days for when in due_days(index, UNTIL, ["mail"], asks_again=asks_again)]


@pytest.mark.parametrize(
    ("index", "asks_again", "expected"),
    [
        pytest.param(past(3), False, [2, 1, 0], id="those after the newest"),
        pytest.param(past(90), False, list(range(30, -1, -1)), id="a month back at most"),
        pytest.param(past(*range(20)), False, [], id="none"),
        pytest.param(past(*range(20)), True, [6, 5, 4, 3, 2, 1, 0], id="a week for late evidence"),
        pytest.param(past(0, 1, 2, 4, 5, 9), False, [6, 3], id="left out within a week"),
        pytest.param(past(0, 25), False, [6, 5, 4, 3, 2, 1], id="an old one that was asked for"),
        pytest.param(
            past(*range(12)) | past(10, is_closed=False), False, [10], id="open until it closes"
        ),
    ],
)
def test_days_are_due(index, asks_again, expected):
    assert due(index, asks_again=asks_again) == expected


def test_a_channel_that_failed_or_was_not_reached_is_owed_a_month_long():
    index = past(*range(40))
    for n, attempts in ((35, 4), (20, 4), (15, 0)):
        when = UNTIL - timedelta(n)
        index[when] = replace(index[when], deliveries=(Delivery("mail", "0-a", AT, attempts),))

    assert due(index) == [20, 15]


def test_a_channel_that_is_new_in_the_settings_is_owed_nothing_of_the_past():
    assert due_days(past(0, 1, 2), UNTIL, ["mail", "webhook"], asks_again=False) == []


@pytest.mark.parametrize(
    ("now", "starts_at", "expected"),
    [
        ("2026-11-20T22:59", "00:00", "2026-11-19"),  # in Berlin still the 20th
        ("2026-11-20T23:00", "00:00", "2026-11-20"),
        ("2026-11-20T15:59", "17:00", "2026-11-18"),
        ("2026-11-20T16:00", "17:00", "2026-11-19"),
        ("2026-10-25T22:59", "00:00", "2026-10-24"),  # 25 hours
        ("2026-10-25T23:00", "00:00", "2026-10-25"),
        ("2026-03-29T21:59", "00:00", "2026-03-28"),  # 23 hours
        ("2026-03-29T22:00", "00:00", "2026-03-29"),
    ],
)
def test_the_last_day_is_the_last_that_has_ended_where_the_site_is(now, starts_at, expected):
    settings = StatementSettings(zone="Europe/Berlin", day_starts_at=starts_at)

    found = last_day(settings, datetime.fromisoformat(now).replace(tzinfo=UTC))

    assert found.isoformat() == expected
