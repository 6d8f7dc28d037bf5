"""`goodput notify` and what `goodput doctor` says of targets."""

import contextlib
import json
import shutil

import pytest
from tests.app.command_line import run
from tests.app.notify.conftest import fail
from tests.app.receivers import free_port

from goodput_app.cli.doctor.reports import notification_findings
from goodput_app.settings import settings
from goodput_queries.database import LocalStore


@pytest.fixture
def configured(here, hook, post):
    """Write settings with a web server, a mail server and one that is down; return its port."""
    port = free_port()
    (here / "goodput.toml").write_text(
        f"""
        [report.mail]
        host = "127.0.0.1"
        port = {post.port}
        security = "none"
        sender = "goodput@lab.example"
        to = ["finance@lab.example"]
        [[notify]]
        to = "webhook"
        url = "{hook.url}"
        [[notify]]
        to = "owner"
        address = "{{user}}@lab.example"
        [[notify]]
        to = "slack"
        url = "http://127.0.0.1:{port}/secret"
        """
    )
    settings.cache_clear()
    return port


def test_a_test_message_goes_to_each_target_and_errors_are_rows(configured, hook, post):
    result = run("notify", "--test", "--user", "ann", "--format", "json")

    assert result.exit_code == 1
    assert "1 of 3 targets failed." in result.stderr
    rows = {row["target"]: row for row in json.loads(result.stdout)}
    assert [rows[name]["status"] for name in ("webhook", "owner", "slack")] == [
        "sent", "sent", "failed",
    ]  # fmt: skip
    assert rows["slack"]["error"] == (
        f"http://127.0.0.1:{configured}: no connection (Connection refused)."
    )
    assert json.loads(hook.posts[0][1])["findings"][0]["title"] == "Test of a notification"
    assert post.recipients == [["ann@lab.example"]]


@pytest.mark.usefixtures("configured")
def test_a_dry_run_lists_messages_and_sends_none(here, hook, built_empty):
    shutil.copyfile(built_empty, here / "goodput.duckdb")
    with contextlib.closing(LocalStore(here / "goodput.duckdb", threads=1)) as store:
        fail(store)

    result = run("notify", "--dry-run", "--format", "json")

    assert result.exit_code == 0, result.output
    title = "[ticket] A source does not answer: slurm sacct"
    assert [
        (row["target"], row["event"], row["findings"], row["message"])
        for row in json.loads(result.stdout)
    ] == [("webhook", "open", 1, title), ("slack", "open", 1, title)]
    assert hook.posts == []
    with contextlib.closing(LocalStore(here / "goodput.duckdb", threads=1)) as store:
        assert store.read("from state.notifications").is_empty()
        assert store.read("from state.notified_findings").is_empty()


@pytest.mark.usefixtures("here")
def test_one_of_both_is_asked_for_and_targets_are_needed():
    assert "give either --test or --dry-run" in run("notify").stderr
    assert run("notify", "--test", "--dry-run").exit_code == 2

    result = run("notify", "--test")

    assert result.exit_code == 1
    assert "no target is named under [[notify]]" in result.stderr


def test_doctor_tries_each_target_and_sends_nothing(configured, hook, post):
    rows = {what: (status, found) for what, status, found, _ in notification_findings()}

    assert rows == {
        "notify webhook": ("ok", f"{hook.url} answers"),
        "notify owner": ("ok", f"127.0.0.1:{post.port} answers"),
        "notify slack": ("problem",
                         f"http://127.0.0.1:{configured}: no connection (Connection refused)."),
    }  # fmt: skip
    assert (hook.posts, post.mails) == ([], [])
