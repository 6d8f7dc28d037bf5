"""Sign-in by OpenID Connect: Streamlit's routes and cookie, which Authlib fills.

Streamlit answers `/auth/login`, `/auth/logout` and `/oauth2callback` and keeps the claims of the ID
token in a signed cookie. It reads that cookie for WebSockets only; here it is read for every
request, and is as old as `[access] session_h` at most.
"""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from streamlit.auth_util import encode_provider_token, get_cookie_with_chunks

from goodput_app.access.members import Person, RefusedError, person_of
from goodput_app.access.settings import AccessSettings, OidcSettings

COOKIE = "_streamlit_user"
LOGIN, LOGOUT, CALLED_BACK = "/auth/login", "/auth/logout", "/oauth2callback"
PROVIDER = "default"
ENDED_MAX = 10_000


def streamlit_secrets(access: AccessSettings) -> dict[str, Any] | None:
    """Return what is in `secrets.toml` otherwise, None where people do not sign in this way.

    Raises GoodputError where a secret is absent.
    """
    oidc = access.oidc
    if access.sign_in != "oidc" or oidc is None:
        return None
    return {
        "auth": {
            "redirect_uri": oidc.redirect_uri,
            "cookie_secret": oidc.cookie_secret(),
            "client_id": oidc.client_id,
            "client_secret": oidc.client_secret(),
            "server_metadata_url": oidc.server_metadata_url,
            "client_kwargs": {"scope": " ".join(oidc.scopes)},
        }
    }


def login_url() -> str:
    """Return the path that begins a sign-in, as `st.login` makes it: good for two minutes."""
    return f"{LOGIN}?provider={encode_provider_token(PROVIDER)}"


class SignedCookie:
    """Reads the person out of the cookie of a browser that signed in."""

    def __init__(self, oidc: OidcSettings, session_h: int) -> None:
        self._oidc = oidc
        self._secret = oidc.cookie_secret()
        self._session_s = session_h * 3600
        self._ended: OrderedDict[bytes, float] = OrderedDict()  # signed out: until when it is kept

    def end(self, cookies: Mapping[str, str]) -> None:
        """Take a cookie for nobody's from now on, in this process: a copy of it opens nothing."""
        if (read := self._read(cookies)) is None:
            return
        now = time.time()
        self._ended[_digest(*read)] = now + self._session_s
        while len(self._ended) > ENDED_MAX or next(iter(self._ended.values())) < now:
            self._ended.popitem(last=False)

    def person(self, cookies: Mapping[str, str]) -> Person | None:
        """Return who signed in, None for nobody, or for longer ago than a session lasts.

        Raises RefusedError for claims without a usable name, or with an unverified address.
        """
        read = self._read(cookies)
        if read is None or _digest(*read) in self._ended:
            return None
        found, signed_at_s = read
        try:
            claims = json.loads(found)
        except ValueError:  # pieces of two sign-ins
            return None
        if claims.get("origin") != self._oidc.origin or claims.get("is_logged_in") is not True:
            return None
        return self._person_of(claims, signed_at_s + self._session_s)

    def _read(self, cookies: Mapping[str, str]) -> tuple[bytes, float] | None:
        """Return what is signed in a cookie, and since when."""
        signed_at: list[float] = []

        def part(name: str) -> bytes | None:
            signer = URLSafeTimedSerializer(self._secret, salt=name)
            try:
                value, at = signer.loads(
                    cookies.get(name, ""), max_age=self._session_s, return_timestamp=True
                )
            except BadData:
                return None
            signed_at.append(at.timestamp())
            return value.encode() if isinstance(value, str) else None

        found = get_cookie_with_chunks(part, COOKIE)
        return (found, min(signed_at)) if found else None

    def _person_of(self, claims: dict[str, Any], expires_at_s: float) -> Person:
        key = self._oidc.name_claim
        name = claims.get(key)
        if not isinstance(name, str):
            raise RefusedError(f"The provider gives no claim {key!r} with the name of a person.")
        if key == "email" and claims.get("email_verified") is False:
            raise RefusedError("The provider did not verify the address of this account.")
        groups = claims.get(self._oidc.groups_claim) or []
        groups = [groups] if isinstance(groups, str) else groups
        if not isinstance(groups, list) or not all(isinstance(one, str) for one in groups):
            raise RefusedError(f"The claim {self._oidc.groups_claim!r} is not a list of groups.")
        return person_of(name, groups, expires_at_s)


def _digest(found: bytes, signed_at_s: float) -> bytes:
    """Return a digest of what was signed: a signature can be written in several ways."""
    return hashlib.sha256(b"%d:%b" % (signed_at_s, found)).digest()
