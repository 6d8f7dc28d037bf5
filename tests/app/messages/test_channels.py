"""What arrives at a real Alertmanager, a mail server and a web server."""

import contextlib
import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.app.messages.notices import HANG, HOSTILE, IDLE, changed
from tests.app.receivers import free_port
from tests.until import until

from goodput_messages.http_post import signature
from goodput_messages.message import message
from goodput_messages.retries import NotSentError
from goodput_messages.send import probe, send, send_again
from goodput_messages.targets import Alertmanager, Owner, Slack, Teams, Webhook
from goodput_queries.errors import GoodputError

NOW = datetime.now(UTC).replace(microsecond=0)
NOW_MS = int(NOW.timestamp() * 1000)
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
ROUTES = """
route:
  receiver: us
  group_by: [finding]
  group_wait: 1ms
  group_interval: 50ms
  repeat_interval: 1h
receivers:
  - name: us
    webhook_configs: [{{url: "{url}", send_resolved: true}}]
"""


@pytest.fixture
def alertmanager(hook, tmp_path):
    """Run an Alertmanager that hands alerts on to the web server."""
    if ALERTMANAGER is None:
        pytest.skip("no Alertmanager here: apt-get install prometheus-alertmanager")
    (tmp_path / "alertmanager.yml").write_text(ROUTES.format(url=hook.url))
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        ALERTMANAGER, f"--config.file={tmp_path}/alertmanager.yml", f"--storage.path={tmp_path}/am",
        f"--web.listen-address={url.removeprefix('http://')}", "--cluster.listen-address=",
    ]  # fmt: skip
    log = tmp_path / "log"
    with log.open("w") as out, subprocess.Popen(command, stderr=out, stdout=out) as process:
        try:
            until(lambda: is_ready(url) or process.poll() is not None, "it is ready")
            assert process.poll() is None, log.read_text()
            yield url
        finally:
            process.kill()


def is_ready(url):
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/-/ready", trust_env=False).is_success
    return False


def active(url):
    return httpx.get(f"{url}/api/v2/alerts", trust_env=False).json()


def handed_on(hook):
    """Return (status, finding) of what the Alertmanager handed on."""
    return [
        (alert["status"], alert["labels"]["finding"])
        for _, body in hook.posts
        for alert in json.loads(body)["alerts"]
    ]


def recent(*notices):
    return tuple(changed(one, since_ms=NOW_MS - 60_000) for one in notices)


@pytest.mark.machine
def test_an_alertmanager_hands_on_each_finding_once_and_its_end_once(alertmanager, hook):
    target = Alertmanager(url=alertmanager)
    notices = recent(HANG, IDLE, HOSTILE)
    keys = {one.finding_key for one in notices}
    opened = message("alertmanager", "open", notices, NOW_MS)
    send(opened, target, NOW)
    until(lambda: len(handed_on(hook)) == 3, "it hands on three")

    send(opened, target, NOW)  # a second copy, after a restart
    first = {one["labels"]["finding"]: one["endsAt"] for one in active(alertmanager)}
    send_again(notices, target, NOW + timedelta(seconds=300))
    again = {one["labels"]["finding"]: one["endsAt"] for one in active(alertmanager)}
    assert keys == first.keys() == again.keys()
    assert all(again[key] > first[key] for key in keys)

    send(message("alertmanager", "resolved", notices, NOW_MS), target, NOW)
    until(lambda: len(handed_on(hook)) == 6, "it hands on their ends")
    assert sorted(handed_on(hook)) == sorted(
        (status, key) for status in ("firing", "resolved") for key in keys
    )
    assert active(alertmanager) == []
    assert probe(target, None) == alertmanager


def test_a_webhook_is_signed_and_carries_one_key_for_all_copies(hook, monkeypatch):
    monkeypatch.setenv("SIGN", "s3cret")
    monkeypatch.setenv("TOKEN", "t0ken")
    target = Webhook(url=hook.url, secret_env="SIGN", token_env="TOKEN")
    content = message("webhook", "open", (HANG,), NOW_MS)

    for later_s in (0, 90):
        send(content, target, NOW + timedelta(seconds=later_s))

    (first, body), (second, again) = hook.posts
    assert body == again
    assert first["idempotency-key"] == second["idempotency-key"] == content.identity
    assert first["authorization"] == "Bearer t0ken"
    at_s = int(first["webhook-timestamp"])
    assert first["webhook-signature"] == signature("s3cret", content.identity, at_s, body, "notify")


@pytest.mark.parametrize("kind", [Slack, Teams])
def test_a_channel_whose_url_is_a_secret_names_no_more_than_its_server(hook, monkeypatch, kind):
    monkeypatch.setenv("URL", f"{hook.url}/T0/s3cret")
    hook.answers += [(200, {}), (403, {}), (429, {"Retry-After": "7"})]
    target = kind(url_env="URL")
    content = message("s", "open", (HANG,), NOW_MS)
    send(content, target, NOW)

    with pytest.raises(NotSentError) as refused:
        send(content, target, NOW)
    with pytest.raises(NotSentError) as busy:
        send(content, target, NOW)

    assert hook.paths[0] == "/T0/s3cret"
    assert "s3cret" not in f"{refused.value}{busy.value}"
    assert "[notify]" in str(refused.value)
    assert (refused.value.is_transient, busy.value.is_transient) == (False, True)
    assert busy.value.wait_s == 7


def test_the_owner_of_a_job_gets_mail_at_the_own_address(post):
    target = Owner(
        host="127.0.0.1", port=post.port, sender="Goodput <goodput@lab.example>", security="none",
        address="{user}@lab.example", addresses={"ann": "al@x.example"},
    )  # fmt: skip
    of_bob = changed(IDLE, user="bob")

    for notice in (IDLE, of_bob):
        content = message("owner", "open", (notice,), NOW_MS, recipient=notice.user or "")
        send(content, target, NOW)

    assert post.recipients == [["al@x.example"], ["bob@lab.example"]]
    assert post.mails[0]["Subject"].startswith("[ticket] Your run tune (7): 16 GPUs have been")
    stranger = message("owner", "open", (IDLE,), NOW_MS, recipient="eve@evil.example")
    with pytest.raises(GoodputError, match="nothing says where user 'eve@"):
        send(stranger, target, NOW)
