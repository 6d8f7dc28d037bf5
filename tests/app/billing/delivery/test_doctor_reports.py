"""`goodput doctor` and the Data page on statements: delivered, failed, who answers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goodput_app.cli.doctor.reports import report_findings
from goodput_app.settings import settings
from goodput_billing.delivery.deliver import send_statement

pytestmark = pytest.mark.usefixtures("here")


def findings(text):
    Path("goodput.toml").write_text(text)
    settings.cache_clear()
    return {what: tuple(rest) for what, *rest in report_findings("goodput.duckdb")}


def test_without_statements_the_way_to_them_is_named_and_wrong_settings_are_a_problem():
    (row,) = findings("").values()
    (wrong,) = findings('[report]\nat = "7 am"\n').values()

    assert row[:2] == ("missing", "none was delivered to goodput-statements")
    assert row[2].startswith("goodput report --deliver; to do it daily see [report] in /")
    assert wrong[0] == "problem"
    assert "'report.at' is '7 am', expected like 07:00" in wrong[1]


def of_day(made, days_ago):
    return replace(made, day=replace(made.day, date=datetime.now(UTC).date() - timedelta(days_ago)))


def test_the_last_statement_and_what_failed_are_reported(closed, plan, post):
    made = of_day(closed, 1)
    post.answers += ["554 5.3.0 the disk is full"]
    send_statement(made, plan)

    rows = findings('[report]\nfolder = "out"\n')

    assert rows["statements"] == ("ok", f"the last is of {made.day.date}, closed, in out", "")
    status, found, then = rows["statements by mail"]
    assert (status, then) == ("problem", "it is retried; to retry now: goodput report --deliver")
    assert found.startswith(f"{made.day.date} failed 2026-11-20 15:00Z: 127.0.0.1:")
    assert "statements by webhook" not in rows


def test_what_is_not_tried_again_any_more_is_history(closed, plan, post):
    post.answers += ["554 5.3.0 the disk is full"]
    send_statement(of_day(closed, 40), plan)
    assert "statements by mail" not in findings('[report]\nfolder = "out"\n')


def test_statements_that_should_be_newer_are_a_problem(closed, plan):
    old = of_day(closed, 3)
    send_statement(old, plan)

    (row,) = findings('[report]\nfolder = "out"\nat = "07:00"\n').values()

    assert row[0] == "problem"
    assert row[2] == f"goodput report --deliver --date {old.day.date + timedelta(1)} says why"


def test_servers_that_answer_and_those_that_do_not_are_reported(post, hook):
    text = (
        '[report.mail]\nhost = "127.0.0.1"\nsender = "a@lab.example"\nto = ["b@lab.example"]\n'
        'security = "{security}"\nport = {port}\ntimeout_s = 5\n'
        '[report.webhook]\nurl = "{url}/secret-path"\ntimeout_s = 5\n'
    )

    good = findings(text.format(security="none", port=post.port, url=hook.url))
    bad = findings(text.format(security="starttls", port=post.port, url="http://127.0.0.1:9"))

    assert good["report.mail"] == ("ok", f"127.0.0.1:{post.port} answers", "")
    assert good["report.webhook"] == ("ok", f"{hook.url} answers", "")
    assert bad["report.mail"][0] == bad["report.webhook"][0] == "problem"
    _, found, then = bad["report.webhook"]
    assert found.startswith("http://127.0.0.1:9: no connection (Connection refused)")
    assert then == "fix it there, or [report.webhook] in goodput.toml"
    assert "secret-path" not in str((good, bad))
    assert (post.mails, hook.posts) == ([], [])


@pytest.fixture
def page(evidence, configured, plan, visit):
    """Give what opens the Data page of a database with one node, statements in `out`."""
    configured(f'[report]\nfolder = "{plan.folder}"\n')
    evidence.add("nodes", source="slurm", node="n1")
    return lambda: visit(evidence.store, "data_health", is_sound=False)


def test_it_shows_what_went_out_and_what_failed_first(page, closed, plan, post):
    post.answers += ["554 5.3.0 <b>full</b>"]
    send_statement(closed, plan)

    app = page()

    assert [one.value for one in app.error] == ["1 of 3 deliveries failed; they are tried again."]
    table = next(one.value for one in app.dataframe if "channel" in one.value.columns)
    assert table["channel"].tolist() == ["mail", "files", "webhook"]
    assert table["error"][0].endswith("refused the mail (554 5.3.0 <b>full</b>).")
    assert table["error"].isna().tolist() == [False, True, True]


def test_without_statements_it_names_the_way_and_a_damaged_index_is_an_error(page, plan):
    app = page()
    assert not app.error
    assert any("`[report]` in goodput.toml" in one.value for one in app.caption)

    plan.folder.mkdir()
    (plan.folder / "statements.jsonl").write_text("{")
    (error,) = page().error
    assert "line 1 is not an entry of the index" in error.value
