"""Mail: what arrives, and what a server that refuses makes of it."""

import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.app.receivers import PASSWORD, mail_settings

from goodput_messages import mail
from goodput_messages.mail import Letter
from goodput_messages.retries import NotSentError

AT = datetime(2026, 11, 20, 7, tzinfo=UTC)
LETTER = Letter(
    "GPU statement 2026-11-19: $1,234.50, closed", "Billed 1,234.50 to 漢字.\n",
    "<p>Billed <b>1,234.50</b></p>", "statement-2026-11-19-0-0123456789abcdef0123456789abcdef",
)  # fmt: skip
OTHER_PASSWORD = "wr0ng"  # noqa: S105 -- and of no use


def send(settings, letter=LETTER, **files):
    named = {name.replace("_", "."): content for name, content in files.items()}
    return mail.send(mail.message(letter, settings, named, AT), settings)


def test_a_mail_has_text_html_and_files(post):
    settings = mail_settings(post, to=("Finance <finance@lab.example>", "it@lab.example"))

    has = send(settings, statement_csv=b"a,b\r\n1,2\r\n", statement_pdf=b"%PDF-1.7 \x00\xff")

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


def test_a_copy_bears_the_same_id_and_a_correction_answers_it(post):
    settings = mail_settings(post, sender="goodput@a-domain-of-some-length.department.lab.example")
    identity = "statement-2026-11-19-1-fedcba9876543210fedcba9876543210"

    send(settings)
    send(settings, replace(LETTER, identity=identity, answers=LETTER.identity))

    domain = "@a-domain-of-some-length.department.lab.example>"
    first = f"<{LETTER.identity}{domain}"
    assert [one["Message-ID"] for one in post.mails] == [first, f"<{identity}{domain}"]
    assert post.mails[1]["In-Reply-To"] == first
    assert post.mails[1]["References"] == first
    assert first.encode() in post.raw[0]  # whole, on whatever line


def test_line_breaks_in_a_subject_make_no_header(post):
    hostile = "GPU statement\r\nBcc: everybody@lab.example\r\n\r\n<script>\x1b[31m"

    send(mail_settings(post), replace(LETTER, subject=hostile))

    (arrived,) = post.mails
    assert arrived["Subject"] == "GPU statement Bcc: everybody@lab.example <script>\\x1b[31m"
    assert arrived["Bcc"] is None
    assert post.recipients == [["finance@lab.example"]]


@pytest.fixture
def secured(secure_post, certificate, monkeypatch):
    """Give what makes settings for the server that wants STARTTLS and a password."""
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    usual = {"password_env": "SMTP_PASSWORD", "ca_file": str(certificate[0])}
    return lambda **more: mail_settings(
        secure_post, security="starttls", username="goodput", **usual | more
    )


def test_with_starttls_and_a_password_it_is_let_in_and_a_probe_mails_nothing(secure_post, secured):
    assert mail.probe(secured()) == f"127.0.0.1:{secure_post.port}"
    assert secure_post.mails == []

    send(secured())

    assert len(secure_post.mails) == 1
    assert secure_post.logins == [("goodput", PASSWORD)] * 2


def test_a_wrong_password_is_refused_and_not_printed(secure_post, secured, tmp_path):
    (tmp_path / "password").write_text(f"{OTHER_PASSWORD}\n")
    settings = secured(password_env=None, password_file=str(tmp_path / "password"))

    with pytest.raises(NotSentError, match="refused user and password \\(535") as caught:
        send(settings)

    assert not caught.value.is_transient
    assert OTHER_PASSWORD not in str(caught.value)
    assert set(secure_post.logins) == {("goodput", OTHER_PASSWORD)}  # each way that it offers


def test_a_server_that_nobody_vouches_for_gets_no_password(secure_post, secured):
    with pytest.raises(NotSentError, match=r"no secure connection \(self-signed certificate\)"):
        send(secured(ca_file=None))

    assert secure_post.logins == []


def test_a_server_without_starttls_gets_nothing(post):
    with pytest.raises(NotSentError, match=r"STARTTLS .* Check security") as caught:
        send(mail_settings(post, security="starttls"))

    assert not caught.value.is_transient
    assert post.mails == []


@pytest.mark.parametrize(
    ("answer", "is_transient"),
    [("550 5.7.1 no statements here", False), ("451 4.3.0 come back later", True)],
)
def test_a_mail_that_is_refused_says_why_and_whether_for_good(post, answer, is_transient):
    post.answers.append(answer)

    with pytest.raises(NotSentError) as caught:
        send(mail_settings(post))

    assert str(caught.value) == f"127.0.0.1:{post.port} refused the mail ({answer})."
    assert caught.value.is_transient == is_transient


def test_where_nobody_is_taken_nobody_has_it(post):
    post.refused["finance@lab.example"] = "450 4.2.0 greylisted"

    with pytest.raises(NotSentError, match=r"450 4\.2\.0 greylisted") as caught:
        send(mail_settings(post))

    assert caught.value.is_transient
    assert caught.value.recipients == ()


@pytest.mark.parametrize(
    ("listens", "why"),
    [(True, "did not answer within 1 s"), (False, r"no connection \(Connection refused\)")],
    ids=["says nothing", "away"],
)
def test_a_server_that_is_not_there_may_be_another_time(post, listens, why):
    with socket.create_server(("127.0.0.1", 0)) as server:
        post.port = server.getsockname()[1]
        if not listens:
            server.close()

        with pytest.raises(NotSentError, match=why) as caught:
            send(mail_settings(post, timeout_s=1))

    assert caught.value.is_transient
