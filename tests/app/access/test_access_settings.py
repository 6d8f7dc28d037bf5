"""Whom settings, tokens and signed cookies let in, and what is wrong is named."""

import hashlib
import json
import time

import pytest
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from tests.app.command_line import run
from tests.app.conftest import settings_of
from tests.tables import each, gives, refuses

from goodput_app.access import tokens
from goodput_app.access.identity import Identity, Role
from goodput_app.access.members import Person, RefusedError, identity_of, person_of
from goodput_app.access.oidc import COOKIE, SignedCookie
from goodput_app.access.settings import OidcSettings
from goodput_queries.errors import GoodputError

SIGN_IN = '[access]\nsign_in = "proxy"\nhosts = ["x"]\ndefault_role = "viewer"\n'
OF_B = f"\n[[access.tokens]]\nname = 'b'\nsha256 = '{tokens.digest('b')}'"
MEMBER = '[[access.members]]\nperson = "ada"\n'
OIDC = """[access]
sign_in = "oidc"
default_role = "viewer"
[access.oidc]
issuer = "https://id.example.org/realms/hpc/"
client_id = "goodput"
client_secret_env = "CLIENT_SECRET"
cookie_secret_env = "COOKIE_SECRET"
redirect_uri = "https://hpc.example.org/goodput/oauth2callback"
"""


def test_a_provider_is_found_below_its_issuer(monkeypatch):
    found = settings_of(OIDC).access.oidc
    monkeypatch.setenv("COOKIE_SECRET", "short")

    assert found.server_metadata_url == (
        "https://id.example.org/realms/hpc/.well-known/openid-configuration"
    )
    assert (found.origin, found.base_path) == ("https://hpc.example.org", "/goodput")
    with pytest.raises(GoodputError, match="has 5 characters, expected at least 32"):
        found.cookie_secret()


test_what_is_wrong_is_named = refuses(
    GoodputError,
    settings_of,
    ('[access]\nsign_in = "ldap"', "'access.sign_in' is 'ldap', expected one of oidc, proxy."),
    ('[access]\nsign_in = "oidc"', "'access.members' is empty, expected [[access.members]]"),
    (f'[access]\nsign_in = "oidc"\n{MEMBER}',
     "'access.sign_in' is 'oidc', expected a section [access.oidc]."),
    (f'[access]\nsign_in = "proxy"\n{MEMBER}', "'access.hosts' is empty, expected the names"),
    ('[access]\nhosts = ["https://a"]', "'access.hosts' has 'https://a', expected names"),
    ("[access]\nsession_h = 0", "'access.session_h' is 0, expected 1 to 720 hours."),
    ('[access]\ndefault_role = "root"', "'access.default_role' is 'root', expected one of"),
    (f"{SIGN_IN}[access.per_person]\nmemory_mib = 100",
     "'access.per_person.memory_mib' is 100, expected 512 or more"),
    ('[access]\nhost = "a"', "there is no setting 'access.host'; known: access.sign_in"),
    ("[access.members]\nperson = 'a'", "'access.members' is a list; write each member as"),
    (f"{MEMBER}group = 'b'", "an [[access.members]] table needs one of 'person' and 'group'."),
    (f"{MEMBER}role = 'root'", "'access.members.role' is 'root', expected one of viewer,"),
    (f"{MEMBER}teams = []", "'access.members.teams' is empty, expected names of teams"),
    ("[access.proxy]\naddresses = ['a']", "'access.proxy.addresses' has 'a', expected"),
    ("[access.proxy]\nname_header = 'a b'", "'access.proxy.name_header' is 'a b', expected"),
    (OIDC.replace("issuer", "issuers"), "there is no setting 'access.oidc.issuers'; known:"),
    (f"{OIDC}metadata_url = 'https://a'", "needs one of 'issuer' and 'metadata_url'"),
    (OIDC.replace("client_id =", "name_claim ="), "'access.oidc.client_id' is missing"),
    (OIDC.replace("https://id", "http://id"), "expected a URL with https"),
    (OIDC.replace("/oauth2callback", "/"), "followed by /oauth2callback, such as"),
    (f"{OIDC}client_secret = 'hunter2'", "no setting 'access.oidc.client_secret'; known: "),
    (f"{OIDC}scopes = ['email']", "'access.oidc.scopes' lacks \"openid\""),
    (f"{OIDC}client_secret_file = 'a'", "one of client_secret_env and client_secret_file"),
    (OF_B, "needs 'access.sign_in'"),
    (f"{SIGN_IN}[[access.tokens]]\nname = 'a'\nsha256 = 'A'", "not a SHA-256 in lower case"),
    (f"{SIGN_IN}[[access.tokens]]\nname = 'a'\nkey = 1", "no setting 'access.tokens.key'"),
    (f"{SIGN_IN}{OF_B}\nteams = []", "'access.tokens.teams' is empty"),
    (f"{SIGN_IN}{OF_B}\nrole = 'root'", "'access.tokens.role'"),
    (f"{SIGN_IN}{OF_B}{OF_B}", "two tables with the same name"),
)  # fmt: skip

MEMBERS = """
[[access.members]]
person = "ada"
role = "operator"
teams = ["nlp"]
[[access.members]]
group = "vision"
teams = ["cv", "video"]
[[access.members]]
group = "platform"
role = "admin"
"""

test_roles_and_teams_of_all_matching_members_add_up = gives(
    lambda name, groups: identity_of(Person(name, frozenset(groups)), settings_of(MEMBERS).access),
    ("ada", [], Identity("ada", frozenset({Role.OPERATOR}), frozenset({"nlp"}))),
    ("ada", ["vision"],
     Identity("ada", frozenset({Role.OPERATOR, Role.VIEWER}),
              frozenset({"nlp", "cv", "video"}))),
    ("bob", ["vision", "platform"], Identity("bob", frozenset({Role.VIEWER, Role.ADMIN}))),
    ("Ada", [], None),
    ("vision", [], None),
    ("bob", ["ada"], None),
)  # fmt: skip

test_a_name_that_cannot_be_shown_is_refused = refuses(
    RefusedError,
    lambda name: person_of(name, []),
    *((name, "no usable name")
      for name in ("", "  ", "a\nb", "a\x1b[31m", "\u202eada", "x" * 81)),
)  # fmt: skip


def names(text, is_loopback):
    found = settings_of(text).access.names(is_loopback=is_loopback)
    return found and sorted(found)


OWN = ["127.0.0.1", "::1", "localhost"]
test_hosts_are_those_of_the_settings_and_the_loopback = gives(
    names,
    ("", True, OWN),
    ("", False, None),
    ('[access]\nhosts = ["a"]', False, [*OWN[:2], "a", "localhost"]),
    (OIDC, False, [*OWN[:2], "hpc.example.org", "localhost"]),
)


def test_a_printed_token_is_who_its_table_says():
    command = ["token", 'Grafana "1"', "--role", "finance", "--team", "nlp", "--days", "30"]
    result = run(*command)
    token = result.stdout.strip()
    table = result.stderr[result.stderr.index("[[access.tokens]]") :]

    access = settings_of(SIGN_IN + table).access

    assert tokens.identity_of(token, access) == Identity(
        'token Grafana "1"', frozenset({Role.FINANCE}), frozenset({"nlp"})
    )
    assert tokens.identity_of(token + "x", access) is None
    assert token not in table
    assert tokens.new_token() != token


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
        lambda name, value: cookies.__setitem__(name, sign(name, value).decode()),
        sign, COOKIE, claims, cookie_attr_size=80,
    )  # fmt: skip
    return cookies


def test_many_groups_are_read_from_several_cookies(cookie):
    groups = [hashlib.sha256(bytes([number])).hexdigest() for number in range(200)]
    cookies = signed({**CLAIMS, "groups": groups})

    person = cookie.person(cookies)

    assert len(cookies) > 2
    assert person.groups == frozenset(groups)
    assert cookie.person({**cookies, f"{COOKIE}_2": cookies[f"{COOKIE}_1"]}) is None
    del cookies[f"{COOKIE}_2"]
    assert cookie.person(cookies) is None


@each(
    dict[str, str], lambda: {COOKIE: "forged"}, lambda: {COOKIE: json.dumps(CLAIMS)},
    lambda: signed(CLAIMS, secret="t" * 32), lambda: {COOKIE: signed(CLAIMS)[COOKIE][:-1]},
    lambda: signed({**CLAIMS, "origin": "https://other.example.org"}),
    lambda: signed({**CLAIMS, "is_logged_in": False}),
    lambda: {COOKIE: create_signed_value(SECRET, "_streamlit_user_tokens", "{}").decode()},
)  # fmt: skip
def test_any_other_cookie_is_nobodys(cookie, cookies):
    assert cookie.person(cookies()) is None


def test_a_cookie_is_who_its_claims_say_for_as_long_as_a_session(cookie, monkeypatch):
    cookies, now_s = signed(CLAIMS), time.time()
    person = cookie.person(cookies)
    monkeypatch.setattr(time, "time", lambda: now_s + HOUR_S + 2)

    assert (person.name, person.groups) == ("ada@example.org", frozenset({"ml"}))
    assert abs(person.expires_at_s - now_s - HOUR_S) < 60
    assert cookie.person(cookies) is None


def test_a_copy_of_a_cookie_opens_nothing_after_the_sign_out(cookie):
    cookies, of_another = signed(CLAIMS), signed({**CLAIMS, "email": "eve@example.org"})

    cookie.end(cookies)
    cookie.end({COOKIE: "forged"})

    for copy in (cookies, {**cookies, f"{COOKIE}_9": "more"}):
        assert cookie.person(copy) is None
    assert isinstance(cookie.person(of_another), Person)


@each(
    ({"email": None}, "no claim 'email'"),
    ({"email": ["ada"]}, "no claim 'email'"),
    ({"email": "ada\u202e"}, "no usable name"),
    ({"email_verified": False}, "did not verify the address"),
    ({"groups": {"ml": True}}, "not a list of groups"),
    ({"groups": ["ml", 1]}, "not a list of groups"),
)
def test_claims_that_name_nobody_are_refused(cookie, claims, sentence):
    with pytest.raises(RefusedError, match=sentence):
        cookie.person(signed({**CLAIMS, **claims}))
