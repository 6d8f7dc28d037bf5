"""The index of past statements: what it remembers, and what it does not believe."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from tests.app.billing.conftest import past_statement

from goodput_billing.delivery.archive import Delivery, keep, page, past_statements
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
    taken = again.taken("mail")
    assert taken.version == "0-a"
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


@pytest.mark.parametrize("name", ["../secrets", "/etc/passwd", "..", ".", ""])
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
