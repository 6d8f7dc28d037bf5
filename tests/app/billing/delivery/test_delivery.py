"""Handing a day out: once to everybody, whatever fails in between; the index of past statements."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace as change
from tests.app.billing.conftest import past_statement
from tests.tables import gives

from goodput_billing.delivery.archive import Delivery, keep, page, past_statements
from goodput_billing.delivery.deliver import send_statement
from goodput_billing.delivery.due import due_days, last_day
from goodput_billing.render import atomic
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.settings import StatementSettings
from goodput_messages.retries import PAUSES_S
from goodput_queries.errors import StoreError


def test_a_closed_day_is_filed_mailed_posted_and_noted(closed, lines, plan, post, hook):
    outcome = send_statement(closed, plan)

    assert outcome.errors == ()
    assert outcome.is_settled
    names = ("statement-2026-11-19.csv", "statement-2026-11-19.html")
    assert {p.name for p in plan.folder.iterdir()} == {*names, "statements.jsonl", "index.html"}
    (arrived,) = post.mails
    assert arrived["Subject"] == "GPU statement 2026-11-19: $1,323.43, closed"
    (attached,) = arrived.iter_attachments()
    assert attached.get_payload(decode=True) == (plan.folder / names[0]).read_bytes()
    text = arrived.get_body(("plain",)).get_content()
    assert f"HTML: https://files.example/gpu/{names[1]}" in text
    ((headers, body),) = hook.posts
    posted = json.loads(body)
    assert posted["event"] == "statement.closed"
    assert posted["id"] == headers["webhook-id"]
    assert f"<{posted['id']}@lab.example>" == arrived["Message-ID"]
    assert posted["totals"]["total"] == "1323.43"
    held_ms = sum(row["gpu_ms"] for row in lines if row["line"] == "usage")
    assert posted["totals"]["held_gpu_ms"] == held_ms
    assert sum(Decimal(row["total"]) for row in posted["accounts"]) == Decimal("1323.43")
    (entry,) = past_statements(plan.folder)
    assert (entry.date, entry.state) == (date(2026, 11, 19), "closed")
    assert entry.total_cost == Decimal("1323.43")
    assert [(one.channel, one.recipients) for one in entry.latest] == [
        ("files", ()), ("mail", ("finance@lab.example",)), ("webhook", ()),
    ]  # fmt: skip


def test_a_channel_that_fails_alone_is_tried_again(closed, plan, post, hook, clock):
    post.answers += ["554 5.3.0 the disk is full"]

    failed = send_statement(closed, plan)
    shown = (plan.folder / "index.html").read_text()
    then = send_statement(closed, plan)

    (error,) = failed.errors
    assert error == f"mail: 127.0.0.1:{post.port} refused the mail (554 5.3.0 the disk is full)."
    assert not failed.is_settled
    assert "554 5.3.0 the disk is full" in shown
    assert clock.pauses == []
    assert then.done == ("mail to 1",)
    assert (len(post.mails), len(hook.posts)) == (1, 1)
    assert "554" not in (plan.folder / "index.html").read_text()


def test_a_channel_that_is_away_for_a_moment_gets_it_all_the_same(closed, plan, post, hook, clock):
    post.answers += ["451 4.3.0 later"] * 2
    hook.answers += [(503, {})]

    assert send_statement(closed, plan).errors == ()
    assert (len(post.mails), post.attempts, len(hook.posts)) == (1, 3, 2)
    assert clock.pauses == [*PAUSES_S[:2], PAUSES_S[0]]
    (entry,) = past_statements(plan.folder)
    assert [(one.channel, one.attempts) for one in entry.latest[1:]] == [
        ("mail", 3),
        ("webhook", 2),
    ]


def test_who_got_it_does_not_get_it_again_when_others_do(closed, plan, post, clock):
    mail = change(plan.report.mail, to=("gone@lab.example", "finance@lab.example"))
    plan = replace(plan, report=change(plan.report, mail=mail))
    post.refused["gone@lab.example"] = "550 5.1.1 no such user"

    failed = send_statement(closed, plan)
    post.refused.clear()
    send_statement(closed, plan)

    assert "gone@lab.example: 550 5.1.1 no such user" in failed.errors[0]
    assert clock.pauses == []  # the refusal is for good
    assert post.recipients == [["finance@lab.example"], ["gone@lab.example"]]


def test_a_correction_is_delivered_and_names_what_it_corrects(closed, corrected, plan, post, hook):
    send_statement(closed, plan)

    outcome = send_statement(corrected, plan)
    again = send_statement(corrected, plan)

    assert outcome.done == (f"2 files in {plan.folder}", "mail to 1", "webhook")
    assert again.done == ()
    first, second = post.mails
    assert second["Subject"] == "GPU statement 2026-11-19: $1,343.43, closed, 1 correction"
    assert second["In-Reply-To"] == first["Message-ID"] != second["Message-ID"]
    assert "Correction 1 adds 20.00" in second.get_body(("plain",)).get_content()
    assert json.loads(hook.posts[1][1])["event"] == "statement.corrected"
    (entry,) = past_statements(plan.folder)
    assert (entry.corrections, entry.total_cost) == (1, Decimal("1343.43"))
    assert all(one.delivered_at is not None for one in entry.latest)


def test_provisional_days_go_out_once_and_then_closed(make, lines, closed, plan, post):
    plan = replace(plan, report=change(plan.report, provisional=True))
    policy = Policy("none", False, {})

    first = send_statement(make(lines[1:], policy), plan)
    still = send_statement(make(lines, policy), plan)
    last = send_statement(closed, plan)

    assert not first.is_settled
    assert still.done == (f"2 files in {plan.folder}",)
    assert last.is_settled
    assert [one["Subject"].rpartition(", ")[2] for one in post.mails] == ["provisional", "closed"]
    assert post.mails[1]["In-Reply-To"] == post.mails[0]["Message-ID"]


def test_a_folder_not_to_write_or_a_damaged_index_lets_nothing_out(closed, plan, post, hook):
    plan.folder.write_text("a file")
    with pytest.raises(StoreError):
        send_statement(closed, plan)
    assert (post.mails, hook.posts) == ([], [])

    plan.folder.unlink()
    send_statement(closed, plan)
    (plan.folder / "statements.jsonl").write_text("{")
    with pytest.raises(StoreError, match="without it statements that were mailed"):
        send_statement(closed, plan)
    assert len(post.mails) == 1


def test_a_file_that_cannot_be_made_leaves_all_earlier_ones(closed, corrected, plan, monkeypatch):
    send_statement(closed, plan)
    before = {path.name: path.read_bytes() for path in plan.folder.iterdir()}

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        send_statement(corrected, plan)

    assert {path.name: path.read_bytes() for path in plan.folder.iterdir()} == before


def test_too_large_files_are_named_and_a_missing_secret_fails_alone(closed, plan, post, hook):
    mail = change(plan.report.mail, attach_max_mb=0)
    webhook = change(plan.report.webhook, token_env="NOT_SET")
    report = change(plan.report, mail=mail, webhook=webhook)

    outcome = send_statement(closed, replace(plan, report=report))

    (arrived,) = post.mails
    assert list(arrived.iter_attachments()) == []
    text = arrived.get_body(("plain",)).get_content()
    assert "Too large to be attached: statement-2026-11-19.csv (0.0 MB)." in text
    assert outcome.errors[0].startswith("webhook: the environment variable NOT_SET is empty")
    assert hook.posts == []


def test_a_new_channel_gets_past_days_only_where_asked_for(closed, plan, post, hook):
    send_statement(closed, replace(plan, report=change(plan.report, webhook=None)))

    send_statement(closed, plan)
    before = len(hook.posts)
    send_statement(closed, replace(plan, is_asked=True))

    assert (before, len(hook.posts), len(post.mails)) == (0, 1, 1)


def test_removed_files_and_later_formats_are_made_and_not_sent(closed, plan, post, hook):
    drafts = plan.folder / ".drafts-of-a-process-that-was-killed"
    drafts.mkdir(parents=True)
    (drafts / "statement-2026-11-18.csv").write_text("half")
    send_statement(closed, plan)
    assert not drafts.exists()
    assert len(list(plan.folder.iterdir())) == 4
    before = {path: path.stat().st_mtime_ns for path in plan.folder.iterdir()}
    again = send_statement(closed, plan)
    assert (again.done, again.errors) == ((), ())
    assert {path: path.stat().st_mtime_ns for path in plan.folder.iterdir()} == before

    path = plan.folder / "statement-2026-11-19.csv"
    content = path.read_bytes()
    path.unlink()
    more = replace(plan, report=change(plan.report, formats=("csv", "parquet")))
    outcome = send_statement(closed, more)

    assert path.read_bytes() == content
    assert outcome.entry.files == ("statement-2026-11-19.csv", "statement-2026-11-19.parquet")
    assert (len(post.mails), len(hook.posts)) == (1, 1)


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
    corrected = replace(ENTRY.with_delivery(delivered("mail", "0-a")), corrections=1, version="1-c")
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
def test_an_index_that_is_damaged_or_names_files_elsewhere_is_not_guessed_at(tmp_path, line):
    keep(tmp_path, ENTRY)
    with (tmp_path / "statements.jsonl").open("ab") as stream:
        stream.write(line)

    with pytest.raises(StoreError, match="line 2 is not an entry of the index"):
        past_statements(tmp_path)
    for number, name in enumerate(("../secrets", "/etc/passwd", "..", ".", "")):
        keep(tmp_path / f"{number}", replace(ENTRY, files=(name,)))
        with pytest.raises(StoreError, match="not in this folder"):
            past_statements(tmp_path / f"{number}")


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
