"""What arrives at a real Alertmanager, a mail server and a web server, or is refused."""

import contextlib
import json
import shutil
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.app.messages.notices import HANG, HOSTILE, IDLE, changed
from tests.app.receivers import PASSWORD, free_port, mail_settings
from tests.app.served import program
from tests.tables import each
from tests.until import until

from goodput_messages import mail
from goodput_messages.http_post import signature
from goodput_messages.mail import Letter
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

    def is_ready():
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{url}/-/ready", trust_env=False).is_success
        return False

    with log.open("w") as out, program(command, stderr=out, stdout=out) as process:
        until(lambda: is_ready() or process.poll() is not None, "it is ready")
        assert process.poll() is None, log.read_text()
        yield url


def active(url):
    return httpx.get(f"{url}/api/v2/alerts", trust_env=False).json()


def handed_on(hook):
    """Return (status, finding) of what the Alertmanager handed on."""
    return [
        (alert["status"], alert["labels"]["finding"])
        for _, body in hook.posts
        for alert in json.loads(body)["alerts"]
    ]


@pytest.mark.machine
def test_an_alertmanager_hands_on_each_finding_once_and_its_end_once(alertmanager, hook):
    target = Alertmanager(url=alertmanager)
    notices = tuple(changed(one, since_ms=NOW_MS - 60_000) for one in (HANG, IDLE, HOSTILE))
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


AT = datetime(2026, 11, 20, 7, tzinfo=UTC)
LETTER = Letter(
    "GPU statement 2026-11-19: $1,234.50, closed", "Billed 1,234.50 to 漢字.\n",
    "<p>Billed <b>1,234.50</b></p>", "statement-2026-11-19-0-0123456789abcdef0123456789abcdef",
)  # fmt: skip
OTHER_PASSWORD = "wr0ng"  # noqa: S105 -- and of no use


def mailed(settings, letter=LETTER, **files):
    named = {name.replace("_", "."): content for name, content in files.items()}
    return mail.send(mail.message(letter, settings, named, AT), settings)


def test_a_mail_has_text_html_and_files(post):
    settings = mail_settings(post, to=("Finance <finance@lab.example>", "it@lab.example"))

    has = mailed(settings, statement_csv=b"a,b\r\n1,2\r\n", statement_pdf=b"%PDF-1.7 \x00\xff")

    (arrived,) = post.mails
    assert has == ("finance@lab.example", "it@lab.example")
    assert post.recipients == [["finance@lab.example", "it@lab.example"]]
    assert arrived["From"] == "Goodput <goodput@lab.example>"
    assert arrived["Subject"] == LETTER.subject
    assert arrived["Date"].datetime == AT
    assert arrived["Auto-Submitted"] == "auto-generated"
    text, html = (arrived.get_body((kind,)) for kind in ("plain", "html"))
    assert text.get_content().splitlines() == ["Billed 1,234.50 to 漢字."]
    assert "<b>1,234.50</b>" in html.get_content()
    attached = {one.get_filename(): one for one in arrived.iter_attachments()}
    assert attached["statement.pdf"].get_content() == b"%PDF-1.7 \x00\xff"
    assert attached["statement.pdf"].get_content_type() == "application/pdf"
    assert attached["statement.csv"].get_content_type() == "text/csv"
    assert attached["statement.csv"].get_payload(decode=True) == b"a,b\r\n1,2\r\n"


def test_a_copy_bears_the_same_id_a_correction_answers_it_and_a_subject_makes_no_header(post):
    settings = mail_settings(post, sender="goodput@a-domain-of-some-length.department.lab.example")
    identity = "statement-2026-11-19-1-fedcba9876543210fedcba9876543210"

    mailed(settings)
    mailed(settings, replace(LETTER, identity=identity, answers=LETTER.identity))

    domain = "@a-domain-of-some-length.department.lab.example>"
    first = f"<{LETTER.identity}{domain}"
    assert [one["Message-ID"] for one in post.mails] == [first, f"<{identity}{domain}"]
    assert post.mails[1]["In-Reply-To"] == first
    assert post.mails[1]["References"] == first
    assert first.encode() in post.raw[0]  # whole, on whatever line

    hostile = "GPU statement\r\nBcc: everybody@lab.example\r\n\r\n<script>\x1b[31m"
    mailed(mail_settings(post), replace(LETTER, subject=hostile))
    last = post.mails[-1]
    assert last["Subject"] == "GPU statement Bcc: everybody@lab.example <script>\\x1b[31m"
    assert last["Bcc"] is None
    assert post.recipients[-1] == ["finance@lab.example"]


@pytest.fixture
def secured(secure_post, certificate, monkeypatch):
    """Give what makes settings for the server that wants STARTTLS and a password."""
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    usual = {"password_env": "SMTP_PASSWORD", "ca_file": str(certificate[0])}
    return lambda **more: mail_settings(
        secure_post, security="starttls", username="goodput", **usual | more
    )


def test_with_starttls_and_a_password_a_trusted_server_lets_in(secure_post, secured):
    with pytest.raises(NotSentError, match=r"no secure connection \(self-signed certificate\)"):
        mailed(secured(ca_file=None))
    assert secure_post.logins == []
    assert mail.probe(secured()) == f"127.0.0.1:{secure_post.port}"
    assert secure_post.mails == []

    mailed(secured())

    assert len(secure_post.mails) == 1
    assert secure_post.logins == [("goodput", PASSWORD)] * 2


def test_a_wrong_password_is_refused_and_not_printed(secure_post, secured, tmp_path):
    (tmp_path / "password").write_text(f"{OTHER_PASSWORD}\n")
    settings = secured(password_env=None, password_file=str(tmp_path / "password"))

    with pytest.raises(NotSentError, match="refused user and password \\(535") as caught:
        mailed(settings)

    assert not caught.value.is_transient
    assert OTHER_PASSWORD not in str(caught.value)
    assert set(secure_post.logins) == {("goodput", OTHER_PASSWORD)}  # each way that it offers


@each({
    "refused": ("none", ["550 5.7.1 no"], {}, "refused the mail (550 5.7.1 no).", False),
    "refused for now": ("none", ["451 4.3.0 hm"], {}, "refused the mail (451 4.3.0 hm).", True),
    "nobody is taken": (
        "none", [], {"finance@lab.example": "450 4.2.0 greylisted"}, "450 4.2.0 greylisted", True,
    ),
    "no STARTTLS": ("starttls", [], {}, "Check security", False),
})  # fmt: skip
def test_mail_that_nobody_gets_says_why(post, security, answers, refused, words, is_transient):
    post.answers, post.refused = answers, refused

    with pytest.raises(NotSentError) as caught:
        mailed(mail_settings(post, security=security))

    assert words in str(caught.value)
    assert str(post.port) in str(caught.value)
    assert (caught.value.is_transient, caught.value.recipients) == (is_transient, ())
    assert post.mails == []


@each((True, "did not answer within 1 s"), (False, r"no connection \(Connection refused\)"))
def test_a_server_that_is_not_there_may_be_another_time(post, listens, why):
    with socket.create_server(("127.0.0.1", 0)) as server:
        post.port = server.getsockname()[1]
        if not listens:
            server.close()

        with pytest.raises(NotSentError, match=why) as caught:
            mailed(mail_settings(post, timeout_s=1))

    assert caught.value.is_transient
