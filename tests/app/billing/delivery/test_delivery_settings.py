"""`[report]` in goodput.toml: what is taken, and what is refused before anything is sent."""

from datetime import time
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.app.conftest import settings_of
from tests.tables import each, gives, refuses

import goodput_app
from goodput_app.settings import read
from goodput_billing.delivery.settings import ReportSettings, StatementMail
from goodput_messages.checks import mailbox, secret
from goodput_queries.errors import GoodputError

EXAMPLE = Path(goodput_app.__file__).with_name("goodput.example.toml")
MAIL = 'host = "mx"\nsender = "a@lab.example"\nto = ["b@lab.example"]\n'
HOOK = 'url = "https://hooks.example/in"\n'


def test_the_example_is_right():
    report = read(EXAMPLE).report

    assert report.time() == time(7)
    assert report.mail.origin == "smtp.example.org:587"
    assert report.mail.attach == ("pdf", "csv")
    assert report.webhook.secret_env is not None


def test_without_a_section_nothing_goes_out_and_a_database_in_memory_has_no_folder():
    report = ReportSettings()

    assert (report.time(), report.mail, report.webhook) == (None, None, None)
    assert report.folder_for("data/fleet.duckdb") == Path("data/fleet-statements")
    assert ReportSettings(folder="out").folder_for(":memory:") == Path("out")
    with pytest.raises(GoodputError, match=r"no folder beside it; set 'report\.folder'"):
        report.folder_for(":memory:")


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_a_port_is_the_usual_one_unless_it_is_named(security, port):
    given = {"host": "mx", "sender": "a@lab.example", "to": ("b@lab.example",)}
    assert StatementMail(**given, security=security).origin == f"mx:{port}"
    assert StatementMail(**given, security=security, port=2525).origin == "mx:2525"


test_what_is_wrong_is_named_and_no_secret_repeated = refuses(
    GoodputError,
    settings_of,
    ('[report]\nat = "7 am"', "'report.at' is '7 am', expected like 07:00"),
    ('[report]\nat = "07:00+01:00"', "expected like 07:00 (in the zone of [statement])"),
    ('[report]\nformats = ["xls"]', "'report.formats' is 'xls', expected one of csv"),
    ("[report]\nformats = []", "'report.formats' is empty"),
    ('[report]\nformats = ["csv", "csv"]', "names something twice"),
    ('[report]\nfiles_url = "javascript:alert(1)"', "'report.files_url' is not a URL"),
    (f'[report.mail]\n{MAIL.replace("mx", "mx/x")}', "'report.mail.host' is 'mx/x'"),
    ('[report.mail]\nhost = "mx"\nsender = "a@b"\nto = []', "'report.mail.to' names nobody"),
    ('[report.mail]\nhost = "mx"\nsender = "a@b"\nto = ["c@d, e@f"]',
     "'report.mail.to' is 'c@d, e@f', expected an address"),
    ('[report.mail]\nhost = "mx"\nsender = "a@b\\r\\nBcc: x@y"\nto = ["c@d"]',
     "expected an address"),
    (f'[report.mail]\n{MAIL}security = "ssl"', "expected one of starttls, tls, none"),
    (f"[report.mail]\n{MAIL}port = 0", "expected 1 to 65535"),
    (f"[report.mail]\n{MAIL}timeout_s = 0", "expected seconds above 0"),
    (f"[report.mail]\n{MAIL}attach_max_mb = -1", "is below 0"),
    (f'[report.mail]\n{MAIL}username = "u"', "needs one of password_env and password_file"),
    (f'[report.mail]\n{MAIL}username = "u"\npassword_env = "P"\nsecurity = "none"',
     "would send the password in the clear"),
    (f'[report.mail]\n{MAIL}password = "geheim"', "would be a secret in a settings file"),
    (f'[report]\nformats = ["csv"]\n[report.mail]\n{MAIL}attach = ["pdf"]',
     "'report.mail.attach' names pdf, which 'report.formats' does not"),
    ("[report.webhook]", "needs one of url, url_env and url_file"),
    (f'[report.webhook]\n{HOOK}url_env = "U"', "and no second of them"),
    (f'[report.webhook]\n{HOOK}secret_env = "A"\nsecret_file = "b"',
     "needs one of secret_env and secret_file"),
    ('[report.webhook]\nurl = "https://me:geheim@hooks.example/"',
     "carries a user or password"),
    ('[report.webhook]\nurl = "http://hooks.example/"\ntoken_env = "T"',
     "would send the token in the clear; expected https"),
)  # fmt: skip


def test_a_secret_comes_from_a_variable_or_a_file_without_its_line_end(tmp_path, monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", " two words ")
    (tmp_path / "password").write_text("from a file\n")
    assert secret("SMTP_PASSWORD", None) == "two words"
    assert secret(None, str(tmp_path / "password")) == "from a file"


@each(
    (b"", "is empty or not set"),
    (b"geheim\nand more\n", "holds no secret but a text of several lines"),
    (b"geheim" * 1000, "or a long one"),
    (b"geheim\xff", "it is not UTF-8"),
)
def test_a_file_that_holds_no_secret_is_named_and_not_repeated(tmp_path, content, message):
    file = tmp_path / "password"
    file.write_bytes(content)

    with pytest.raises(GoodputError) as caught:
        secret(None, str(file))

    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "geheim" not in str(caught.value)


test_one_address_is_distinguished_from_what_is_none = gives(
    lambda text: getattr(mailbox(text), "addr_spec", None),
    ("finance@lab.example", "finance@lab.example"),
    ("Finance <finance@lab.example>", "finance@lab.example"),
    ('"Last, First" <f.last@lab.example>', "f.last@lab.example"),
    ("root@localhost", "root@localhost"),
    *((text, None) for text in ("nobody", "a@b, c@d", "a@", "@b", "<a@b>\r\nBcc: x@y", "",
        "team: a@b;", "b @[", ":;a@b", "ü@lab.example")),
    ("Jörg <j@lab.example>", "j@lab.example"),
)  # fmt: skip


@given(st.text(alphabet=st.sampled_from('ab@.,;:<>()[]"\\ \r\n\tü漢=?'), max_size=20))
@example(".:%ü= aa---])\\")
@example(" .<]'\\!(,()<")
def test_what_is_taken_for_an_address_can_stand_in_a_mail(text):
    found = mailbox(text)

    if found is not None:
        mail = EmailMessage(policy=SMTP)
        mail["To"] = found
        raw = mail.as_bytes()
        assert raw.isascii()
        assert raw.count(b"\r\n") == raw.count(b"\n") == raw.count(b"\r\n ") + 2
