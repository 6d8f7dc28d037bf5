"""Handing a day out: once to everybody, whatever fails in between."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from msgspec.structs import replace as change

from goodput_billing.delivery.archive import past_statements
from goodput_billing.delivery.deliver import send_statement
from goodput_billing.render import atomic
from goodput_billing.statement.amounts.charges import Policy
from goodput_messages.retries import PAUSES_S
from goodput_queries.errors import StoreError


def test_a_closed_day_is_filed_mailed_posted_and_noted(closed, lines, plan, post, hook):
    outcome = send_statement(closed, plan)

    assert outcome.errors == ()
    assert outcome.is_settled
    names = ("statement-2026-11-19.csv", "statement-2026-11-19.html")
    assert {path.name for path in plan.folder.iterdir()} == {
        *names, "statements.jsonl", "index.html",
    }  # fmt: skip
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
    assert posted["totals"]["held_gpu_ms"] == sum(
        row["gpu_ms"] for row in lines if row["line"] == "usage"
    )
    assert sum(Decimal(row["total"]) for row in posted["accounts"]) == Decimal("1323.43")
    (entry,) = past_statements(plan.folder)
    assert (
        entry.date, entry.state, entry.total_cost,
    ) == (date(2026, 11, 19), "closed", Decimal("1323.43"))  # fmt: skip
    assert [(one.channel, one.recipients) for one in entry.latest] == [
        ("files", ()), ("mail", ("finance@lab.example",)), ("webhook", ()),
    ]  # fmt: skip


def test_a_channel_that_fails_stops_no_other_and_alone_is_tried_again(
    closed, plan, post, hook, clock
):
    post.answers += ["554 5.3.0 the disk is full"]

    failed = send_statement(closed, plan)
    shown = (plan.folder / "index.html").read_text()
    then = send_statement(closed, plan)

    assert failed.errors == (
        f"mail: 127.0.0.1:{post.port} refused the mail (554 5.3.0 the disk is full).",
    )
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


def test_where_provisional_days_go_out_they_do_so_once_and_then_closed(
    make, lines, closed, plan, post
):
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


def test_a_folder_that_cannot_be_written_lets_nothing_go_out(closed, plan, post, hook):
    plan.folder.write_text("a file")

    with pytest.raises(StoreError):
        send_statement(closed, plan)

    assert (post.mails, hook.posts) == ([], [])


def test_drafts_of_a_process_that_was_killed_are_cleared_away(closed, plan):
    drafts = plan.folder / ".drafts-abc"
    drafts.mkdir(parents=True)
    (drafts / "statement-2026-11-18.csv").write_text("half")

    send_statement(closed, plan)

    assert not drafts.exists()
    assert len(list(plan.folder.iterdir())) == 4


def test_a_file_that_cannot_be_made_leaves_all_earlier_ones(closed, corrected, plan, monkeypatch):
    send_statement(closed, plan)
    before = {path.name: path.read_bytes() for path in plan.folder.iterdir()}

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        send_statement(corrected, plan)

    assert {path.name: path.read_bytes() for path in plan.folder.iterdir()} == before


def test_a_damaged_index_lets_nothing_go_out(closed, plan, post):
    send_statement(closed, plan)
    (plan.folder / "statements.jsonl").write_text("{")

    with pytest.raises(StoreError, match="without it statements that were mailed"):
        send_statement(closed, plan)

    assert len(post.mails) == 1


def test_files_that_are_too_large_are_named_instead_of_attached(closed, plan, post):
    mail = change(plan.report.mail, attach_max_mb=0)

    send_statement(closed, replace(plan, report=change(plan.report, mail=mail)))

    (arrived,) = post.mails
    assert list(arrived.iter_attachments()) == []
    text = arrived.get_body(("plain",)).get_content()
    assert "Too large to be attached: statement-2026-11-19.csv (0.0 MB)." in text


def test_a_secret_that_is_missing_fails_its_channel_alone(closed, plan, post, hook, monkeypatch):
    monkeypatch.delenv("HOOK_TOKEN", raising=False)
    webhook = change(plan.report.webhook, token_env="HOOK_TOKEN")

    outcome = send_statement(closed, replace(plan, report=change(plan.report, webhook=webhook)))

    assert outcome.errors[0].startswith("webhook: the environment variable HOOK_TOKEN is empty")
    assert (len(post.mails), len(hook.posts)) == (1, 0)


def test_a_channel_that_is_new_in_the_settings_gets_past_days_only_where_asked_for(
    closed, plan, post, hook
):
    send_statement(closed, replace(plan, report=change(plan.report, webhook=None)))

    send_statement(closed, plan)
    before = len(hook.posts)
    send_statement(closed, replace(plan, is_asked=True))

    assert (before, len(hook.posts), len(post.mails)) == (0, 1, 1)


def test_files_that_somebody_removed_and_formats_of_later_are_made_and_nothing_goes_out_again(
    closed, plan, post, hook
):
    send_statement(closed, plan)
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
