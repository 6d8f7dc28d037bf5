"""The index of past statements: what it remembers, and which days are due by it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from tests.app.billing.conftest import past_statement
from tests.tables import each, gives

from goodput_billing.delivery.archive import Delivery, keep, page, past_statements
from goodput_billing.delivery.due import due_days, last_day
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.errors import StoreError

AT = datetime(2026, 11, 20, 7, tzinfo=UTC)
ENTRY = past_statement(date(2026, 11, 19), files=("statement-2026-11-19.csv",))


def delivered(channel, version, hours=0):
    at = AT + timedelta(hours=hours)
    return Delivery(channel, version, at, 1, delivered_at=at)


def test_days_come_back_as_they_were_kept_last_newest_first(tmp_path):
    later = replace(ENTRY, date=date(2026, 11, 20), is_closed=False, version="open-b")
    entry = ENTRY.with_delivery(replace(delivered("mail", "0-a"), recipients=("a@b.example",)))
    corrected = replace(entry, corrections=1, version="1-c", total_cost=Decimal("1300.00"))

    for one in (entry, later, corrected):
        keep(tmp_path / "out", one)

    assert past_statements(tmp_path / "out") == [later, corrected]
    assert corrected.state == "closed, 1 correction"


def test_what_a_channel_took_before_a_correction_stays_known():
    first = ENTRY.with_delivery(delivered("mail", "0-a"))
    corrected = replace(first, corrections=1, version="1-c")
    failed = corrected.with_delivery(Delivery("mail", "1-c", AT, 3, error="away."))
    again = failed.with_delivery(Delivery("mail", "1-c", AT, 6, error="still away."))

    assert corrected.latest == []
    assert [one.error for one in again.latest] == ["still away."]
    assert again.taken("mail").version == "0-a"
    last = again.with_delivery(delivered("mail", "1-c", hours=2))
    assert [one.version for one in last.deliveries if one.channel == "mail"] == ["0-a", "1-c"]
    assert last.taken("mail") == last.latest[0]


@pytest.mark.parametrize(
    "line", [b"{", b'{"date": "2026-11-19"}', b"[" * 100_000, b"\xff\xfe"], ids=range(4)
)
def test_a_damaged_index_is_not_guessed_at(tmp_path, line):
    keep(tmp_path, ENTRY)
    with (tmp_path / "statements.jsonl").open("ab") as stream:
        stream.write(line)

    with pytest.raises(StoreError, match="line 2 is not an entry of the index"):
        past_statements(tmp_path)


@each("../secrets", "/etc/passwd", "..", ".", "")
def test_an_index_names_no_file_outside_of_its_folder(tmp_path, name):
    keep(tmp_path, replace(ENTRY, files=(name,)))

    with pytest.raises(StoreError, match="not in this folder"):
        past_statements(tmp_path)


def test_the_page_links_files_and_shows_what_failed_and_runs_nothing(tmp_path):
    bad = Delivery("mail", "0-a", AT, 4, error="<script>alert(1)</script> refused.")
    keep(tmp_path, replace(ENTRY, files=("a b#.csv",), currency="EUR").with_delivery(bad))

    shown = (tmp_path / "index.html").read_text()

    assert 'href="a%20b%23.csv"' in shown
    assert "€1,234.50" in shown
    assert "failed 2026-11-20 07:00: &lt;script&gt;" in shown
    assert "<script" not in shown
    assert "None yet." in page([]).decode()


UNTIL = date(2026, 11, 30)


def past(*days, is_closed=True):
    """Return an index of days before UNTIL, that the mail got."""
    mailed = (Delivery("mail", "0-a", AT, 1, delivered_at=AT),)
    dates = [UNTIL - timedelta(n) for n in days]
    return {d: past_statement(d, is_closed=is_closed, deliveries=mailed) for d in dates}


def due(index, asks_again=False):
    """Return which days before UNTIL are due for the mail."""
    return [(UNTIL - when).days for when in due_days(index, UNTIL, ["mail"], asks_again=asks_again)]


test_days_are_due = gives(
    due,
    {
        "those after the newest": (past(3), False, [2, 1, 0]),
        "a month back at most": (past(90), False, list(range(30, -1, -1))),
        "none": (past(*range(20)), False, []),
        "a week for late evidence": (past(*range(20)), True, [6, 5, 4, 3, 2, 1, 0]),
        "left out within a week": (past(0, 1, 2, 4, 5, 9), False, [6, 3]),
        "an old one that was asked for": (past(0, 25), False, [6, 5, 4, 3, 2, 1]),
        "open until it closes": (past(*range(12)) | past(10, is_closed=False), False, [10]),
    },
)


def test_a_channel_that_failed_or_was_not_reached_is_owed_a_month_long():
    index = past(*range(40))
    for n, attempts in ((35, 4), (20, 4), (15, 0)):
        when = UNTIL - timedelta(n)
        index[when] = replace(index[when], deliveries=(Delivery("mail", "0-a", AT, attempts),))

    assert due(index) == [20, 15]


def last(now, starts_at):
    settings = StatementSettings(zone="Europe/Berlin", day_starts_at=starts_at)
    return last_day(settings, datetime.fromisoformat(now).replace(tzinfo=UTC)).isoformat()


test_the_last_day_is_the_last_that_has_ended_where_the_site_is = gives(
    last,
    ("2026-11-20T22:59", "00:00", "2026-11-19"),  # in Berlin still the 20th
    ("2026-11-20T23:00", "00:00", "2026-11-20"),
    ("2026-11-20T15:59", "17:00", "2026-11-18"),
    ("2026-11-20T16:00", "17:00", "2026-11-19"),
    ("2026-10-25T22:59", "00:00", "2026-10-24"),  # 25 hours
    ("2026-10-25T23:00", "00:00", "2026-10-25"),
    ("2026-03-29T21:59", "00:00", "2026-03-28"),  # 23 hours
    ("2026-03-29T22:00", "00:00", "2026-03-29"),
)
