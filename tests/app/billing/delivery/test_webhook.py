"""What a statement's mail says, and the web server that it is posted to."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from tests.tables import each

from goodput_billing.delivery.letter import ACCOUNTS_SHOWN, Enclosed, letter
from goodput_billing.delivery.settings import WebhookSettings
from goodput_billing.statement.amounts.charges import Policy
from goodput_messages import http_post
from goodput_messages.retries import NotSentError
from goodput_queries.errors import GoodputError

AT = datetime(2026, 11, 20, 7, tzinfo=UTC)
BODY = '{"date":"2026-11-19","account":"漢字"}'.encode()
IDENTITY = "statement-2026-11-19-0-ab"


def post(url, **more):
    settings = WebhookSettings(**{"url": url, "timeout_s": 5, **more})
    http_post.post(BODY, IDENTITY, settings.endpoint(), AT)


@each(("geheim", b"geheim"), (f"whsec_{base64.b64encode(b'k' * 24).decode()}", b"k" * 24))
def test_a_secret_signs_id_time_and_body(hook, monkeypatch, secret, key):
    monkeypatch.setenv("HOOK_SECRET", secret)
    monkeypatch.setenv("HOOK_TOKEN", "t0ken")

    post(f"{hook.url}/in?team=finance", secret_env="HOOK_SECRET", token_env="HOOK_TOKEN")

    ((headers, body),) = hook.posts
    assert (hook.paths, body) == (["/in?team=finance"], BODY)
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == IDENTITY
    assert headers["webhook-timestamp"] == str(int(AT.timestamp()))
    signed = f"{IDENTITY}.{AT.timestamp():.0f}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["authorization"] == "Bearer t0ken"


@each(
    ("secret_env", "whsec_geheim*base64", "is not base64"),
    ("token_env", "geheim-漢字", "characters that HTTP cannot send"),
)
def test_a_secret_that_cannot_be_used_is_not_printed(hook, monkeypatch, option, value, why):
    monkeypatch.setenv("HOOK_SECRET", value)

    with pytest.raises(GoodputError, match=why) as caught:
        post(hook.url, **{option: "HOOK_SECRET"})

    assert "geheim" not in str(caught.value)
    assert hook.posts == []


@each(
    *((status, {}, False, 0.0) for status in (400, 401, 404, 410)),
    *((status, {}, True, 0.0) for status in (429, 500, 503)),
    (429, {"Retry-After": "7"}, True, 7.0),
    (429, {"Retry-After": "Fri, 20 Nov 2026"}, True, 0.0),
    (429, {"Retry-After": "-1"}, True, 0.0),
    (302, {"Location": "/elsewhere"}, False, 0.0),  # which is not followed
)  # fmt: skip
def test_a_refusal_names_the_status_for_good_or_not(hook, status, headers, is_transient, wait_s):
    hook.answers.append((status, headers))
    hook.said = b"no\r\nsuch \x1b[31m hook"

    with pytest.raises(NotSentError) as caught:
        post(f"{hook.url}/T0000/secret-path")

    assert str(caught.value).startswith(f"{hook.url} answered {status} (no such \\x1b[31m hook).")
    assert "secret-path" not in str(caught.value)
    assert (caught.value.is_transient, caught.value.wait_s) == (is_transient, wait_s)
    assert ("Name the URL that it moved to" in str(caught.value)) == (status == 302)
    assert len(hook.posts) == 1


def test_a_server_that_drips_is_not_waited_for(hook):
    hook.pause_s = 0.3  # each byte is in time, all of them are not

    with pytest.raises(NotSentError, match="did not answer within 1 s") as caught:
        post(hook.url, timeout_s=1)

    assert caught.value.is_transient


def test_a_certificate_is_trusted_by_its_file_only(secure_hook, certificate):
    post(secure_hook.url, ca_file=str(certificate[0]))
    with pytest.raises(NotSentError, match="self-signed certificate") as caught:
        post(secure_hook.url)

    assert len(secure_hook.posts) == 1
    assert not caught.value.is_transient


def test_a_url_that_is_a_secret_comes_from_a_file_and_is_not_printed(hook, tmp_path):
    file = tmp_path / "url"
    file.write_text(f"{hook.url}/secret-path\n")

    post(None, url_file=str(file))
    file.write_text("no url, secret-path")
    with pytest.raises(GoodputError, match="is not a URL") as caught:
        post(None, url_file=str(file))

    assert hook.paths == ["/secret-path"]
    assert "secret-path" not in str(caught.value)


NO_POLICY = Policy("none", False, {})
NOTHING = Enclosed()


def test_it_says_what_was_billed_by_account(make, lines):
    written = letter(make(lines, NO_POLICY, site="hall 1"), "provisional", "id", NOTHING)

    assert written.subject == "GPU statement 2026-11-19 (hall 1): $1,323.43, provisional"
    text = written.text.splitlines()
    assert text[0] == "GPU chargeback statement, Thursday 19 November 2026"
    assert text[3].startswith("Open: figures may still change.")
    row = next(line for line in text if line.strip().startswith("nlp"))
    assert row.split() == ["nlp", "342.9", "0.0", "%", "977.54", "no", "data"]
    assert text[-1] == "1.00 GPU-hours have no price and are not included."


def test_names_begin_no_line_no_tag_and_are_cut(make, lines):
    for row, name in zip(lines[:3], ["<img src=x>", "a\r\nBilled  $0.00", "漢" * 99], strict=True):
        row["team"] = name
    losses = pl.DataFrame(
        [{"cluster": "c", "account": "<b>", "run_id": "r\n\x1b]0;", "label": "Idle", "cause": "",
          "blame": "own", "confidence": "high",
          "gpu_ms": 3_600_000, "cost": Decimal("2.00"), "fix": ""}]
    )  # fmt: skip
    made = make(lines, NO_POLICY)
    object.__setattr__(made, "losses", losses)

    written = letter(made, "closed", "id", NOTHING)

    assert "a\\r\\nBilled  $0.00" in written.text
    assert "r\\n\\x1b]0;" in written.text
    assert "漢" * 19 in written.text
    assert "漢" * 20 not in written.text
    assert "<img" not in written.html
    assert "&lt;img src=x&gt;" in written.html
    assert "&lt;b&gt;" in written.html
    assert "\x1b" not in written.html


def test_accounts_that_are_not_shown_are_added_up_and_links_and_large_files_named(make, lines):
    usage = lines[2] | {"gpu_ms": 3_600_000, "unsettled_ms": 3_600_000}
    many = [usage | {"team": f"team {n:02}"} for n in range(ACCOUNTS_SHOWN + 3)]
    dashboard = ("Dashboard", "https://g.example/?a=1&b=2")
    enclosed = Enclosed([dashboard], ["a.pdf"], ["b.csv (99.0 MB)"])

    written = letter(make(many, NO_POLICY), "closed", "id", enclosed)

    row = next(line for line in written.text.splitlines() if "more" in line)
    assert row.split() == ["3", "more", "3.00", "6.00"]
    assert "team 25" not in written.text
    assert "Attached: a.pdf.\nToo large to be attached: b.csv (99.0 MB).\n" in written.text
    assert written.text.endswith("Dashboard: https://g.example/?a=1&b=2\n")
    assert 'href="https://g.example/?a=1&amp;b=2"' in written.html
