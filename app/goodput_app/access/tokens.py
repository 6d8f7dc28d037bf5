"""Tokens of programs that ask `/api/v1`: random texts, of which the settings have the SHA-256."""

import hashlib
import hmac
import secrets
from datetime import UTC, datetime

from goodput_app.access.identity import Identity, Role
from goodput_app.access.settings import AccessSettings

PREFIX = "goodput_"  # other bearer tokens are a proxy's or a provider's
RANDOM_BYTES = 32  # more than anybody can try, so that a plain hash is enough


def new_token() -> str:
    """Return a token that nobody has."""
    return f"{PREFIX}{secrets.token_urlsafe(RANDOM_BYTES)}"


def digest(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the token of ours in the headers of a request, None where there is none."""
    given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(PREFIX) else None


def identity_of(token: str, access: AccessSettings) -> Identity | None:
    """Return who a token is, None for one that is unknown or has expired."""
    found = [one for one in access.tokens if hmac.compare_digest(one.sha256, digest(token))]
    if not found:
        return None
    (one,) = found
    if one.expires_on is not None and datetime.now(UTC).date() > one.expires_on:
        return None
    teams = None if one.teams is None else frozenset(one.teams)
    return Identity(f"token {one.name}", frozenset({Role(one.role)}), teams)
