"""At which moments a time of day comes."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from goodput_messages.schedule import last_time, next_time

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "at", "last", "following"),
    [
        ("2026-11-20T06:00", "07:00", "2026-11-20T06:00", "2026-11-21T06:00"),
        ("2026-11-20T05:59", "07:00", "2026-11-19T06:00", "2026-11-20T06:00"),
        # the clocks skip 02:30 on 29 March: an hour later, once
        ("2026-03-29T12:00", "02:30", "2026-03-29T01:30", "2026-03-30T00:30"),
        # they show 02:30 twice on 25 October: the first, once
        ("2026-10-25T00:30", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("2026-10-25T01:45", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
    ],
)
def test_a_time_of_day_comes_once_a_day_whatever_the_clocks_do(now, at, last, following):
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    clock = time.fromisoformat(at)

    found = last_time(clock, BERLIN, moment), next_time(clock, BERLIN, moment)

    assert [one.strftime("%Y-%m-%dT%H:%M") for one in found] == [last, following]
