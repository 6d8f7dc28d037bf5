"""The signed cookie of a browser that signed in: whose it is, of which site, and how old."""

import hashlib
import itertools
import json
import time

import pytest
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from goodput_app.access.members import Person, RefusedError
from goodput_app.access.oidc import COOKIE, SignedCookie
from goodput_app.access.settings import OidcSettings

SECRET = "s" * 32
SITE = "https://goodput.example.org"
CLAIMS = {"email": "ada@example.org", "groups": ["ml"], "origin": SITE, "is_logged_in": True}
HOUR_S = 3600


@pytest.fixture
def cookie(monkeypatch):
    monkeypatch.setenv("COOKIE_SECRET", SECRET)
    oidc = OidcSettings(
        issuer="https://id.example.org", client_id="goodput", client_secret_env="CLIENT_SECRET",
        cookie_secret_env="COOKIE_SECRET", redirect_uri=f"{SITE}/oauth2callback",
    )  # fmt: skip
    return SignedCookie(oidc, session_h=1)


def signed(claims, secret=SECRET):
    """Return the cookies that Streamlit sets after a sign-in."""
    cookies = {}

    def sign(name, value):
        return create_signed_value(secret, name, value)

    set_cookie_with_chunks(
        lambda name,
        value: cookies.__setitem__(name, sign(name, value).decode()),
        sign, COOKIE, claims, cookie_attr_size=80,
    )  # fmt: skip
    return cookies


def test_a_person_has_the_name_and_groups_of_the_claims(cookie):
    person = cookie.person(signed(CLAIMS))

    assert (person.name, person.groups) == ("ada@example.org", frozenset({"ml"}))
    assert abs(person.expires_at_s - time.time() - HOUR_S) < 60


def test_many_groups_are_read_from_several_cookies(cookie):
    groups = [hashlib.sha256(bytes([number])).hexdigest() for number in range(200)]
    cookies = signed({**CLAIMS, "groups": groups})

    person = cookie.person(cookies)

    assert len(cookies) > 2
    assert person.groups == frozenset(groups)
    assert cookie.person({**cookies, f"{COOKIE}_2": cookies[f"{COOKIE}_1"]}) is None
    del cookies[f"{COOKIE}_2"]
    assert cookie.person(cookies) is None


@pytest.mark.parametrize(
    "cookies",
    [
        dict[str, str],
        lambda: {COOKIE: "forged"},
        lambda: {COOKIE: json.dumps(CLAIMS)},
        lambda: signed(CLAIMS, secret="t" * 32),
        lambda: {COOKIE: signed(CLAIMS)[COOKIE][:-1]},
        lambda: signed({**CLAIMS, "origin": "https://other.example.org"}),
        lambda: signed({**CLAIMS, "is_logged_in": False}),
        lambda: {COOKIE: create_signed_value(SECRET, "_streamlit_user_tokens", "{}").decode()},
    ],
)
def test_any_other_cookie_is_nobodys(cookie, cookies):
    assert cookie.person(cookies()) is None


def test_a_cookie_is_as_old_as_a_session_at_most(cookie, monkeypatch):
    cookies, now_s = signed(CLAIMS), time.time()
    clock = itertools.cycle([now_s + HOUR_S + 2])
    assert isinstance(cookie.person(cookies), Person)

    monkeypatch.setattr(time, "time", lambda: next(clock))

    assert cookie.person(cookies) is None


def test_a_copy_of_a_cookie_opens_nothing_after_the_sign_out(cookie):
    cookies, of_another = signed(CLAIMS), signed({**CLAIMS, "email": "eve@example.org"})

    cookie.end(cookies)
    cookie.end({COOKIE: "forged"})

    for copy in (cookies, {**cookies, f"{COOKIE}_9": "more"}):
        assert cookie.person(copy) is None
    assert isinstance(cookie.person(of_another), Person)


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"email": None}, "no claim 'email'"),
        ({"email": ["ada"]}, "no claim 'email'"),
        ({"email": "ada\u202e"}, "no usable name"),
        ({"email_verified": False}, "did not verify the address"),
        ({"groups": {"ml": True}}, "not a list of groups"),
        ({"groups": ["ml", 1]}, "not a list of groups"),
    ],
)
def test_claims_that_name_nobody_are_refused(cookie, claims, sentence):
    with pytest.raises(RefusedError, match=sentence):
        cookie.person(signed({**CLAIMS, **claims}))
