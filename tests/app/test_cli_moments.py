"""Moments as people write them on a command line or in a URL."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from goodput_app.time_expressions import moment_ms
from goodput_queries.errors import QueryError

NOW = datetime(2026, 3, 31, 14, 45, 30, 500_000, tzinfo=UTC)  # a Tuesday


def shown(text, *, is_end):
    moment = datetime.fromtimestamp(moment_ms(text, NOW, is_end=is_end) / 1000, UTC)
    return moment.isoformat(sep=" ").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        *((text, moment, moment) for text, moment in (
            ("now", "2026-03-31 14:45:30.500000"),
            ("now-6h", "2026-03-31 08:45:30.500000"),
            ("now-90s", "2026-03-31 14:44:00.500000"),
            ("now+2d", "2026-04-02 14:45:30.500000"),
            ("now-1M", "2026-02-28 14:45:30.500000"),
            ("now-1y", "2025-03-31 14:45:30.500000"),
            ("now-1d-6h", "2026-03-30 08:45:30.500000"),
            ("2026-03-30", "2026-03-30 00:00:00"),
            ("2026-03-30T12:00Z", "2026-03-30 12:00:00"),
            ("2026-03-30T12:00:00.25+02:00", "2026-03-30 10:00:00.250000"),
            (" now ", "2026-03-31 14:45:30.500000"),
        )),
        ("now/d", "2026-03-31 00:00:00", "2026-04-01 00:00:00"),
        ("now-1d/d", "2026-03-30 00:00:00", "2026-03-31 00:00:00"),
        ("now/h", "2026-03-31 14:00:00", "2026-03-31 15:00:00"),
        ("now/m", "2026-03-31 14:45:00", "2026-03-31 14:46:00"),
        ("now/s", "2026-03-31 14:45:30", "2026-03-31 14:45:31"),
        ("now/w", "2026-03-30 00:00:00", "2026-04-06 00:00:00"),
        ("now/M", "2026-03-01 00:00:00", "2026-04-01 00:00:00"),
        ("now-1M/M", "2026-02-01 00:00:00", "2026-03-01 00:00:00"),
        ("now/y", "2026-01-01 00:00:00", "2027-01-01 00:00:00"),
    ],
)  # fmt: skip
def test_a_moment_begins_a_window_cut_down_and_ends_one_cut_up(text, begin, end):
    assert (shown(text, is_end=False), shown(text, is_end=True)) == (begin, end)


def test_now_may_be_given_in_any_zone():
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))

    assert moment_ms("now/d", tokyo) == moment_ms("now/d", NOW)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "now-", "now-6", "now-6q", "now/q", "then-6h", "2026-13-01", "2026-02-30",
     "now-9999y", "now-999999w", "14:00", "1700000000"],
)  # fmt: skip
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(QueryError, match="is not a valid time; expected like"):
        moment_ms(text, NOW)


def test_a_time_without_an_offset_is_refused():
    with pytest.raises(QueryError) as caught:
        moment_ms("2026-03-30T12:00", NOW)

    assert str(caught.value) == (
        "'2026-03-30T12:00' has no offset; "
        "write 2026-03-30T12:00Z for UTC, or 2026-03-30T12:00+01:00."
    )
