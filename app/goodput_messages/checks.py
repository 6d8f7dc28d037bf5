"""Checks that settings of deliveries share: secrets by name, addresses, URLs, lists of names."""

import os
from email.headerregistry import Address
from email.policy import SMTP
from pathlib import Path
from urllib.parse import urlsplit

from goodput_queries.errors import GoodputError
from goodput_queries.remote import LOOPBACK_HOSTS

SECRET_MAX_CHARS = 4096


def secret(variable: str | None, file: str | None) -> str:
    """Return what an environment variable or a file holds, without the white space around it.

    Raises GoodputError naming the variable or the file, never what is in it.
    """
    if variable is not None:
        where, found = f"the environment variable {variable}", os.environ.get(variable, "")
    else:
        where = str(file)
        try:
            with Path(where).open(encoding="utf-8") as stream:
                found = stream.read(SECRET_MAX_CHARS + 1)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise GoodputError(f"{where}: the secret in it cannot be read ({reason}).") from error
    found = found.strip()
    if not found:
        raise GoodputError(f"{where} is empty or not set; it should hold a secret.")
    if len(found) > SECRET_MAX_CHARS or not found.isprintable():
        raise GoodputError(f"{where} holds no secret but a text of several lines, or a long one.")
    return found


def optional_secret(variable: str | None, file: str | None) -> str | None:
    """Return the secret that a variable or a file holds, None where neither is named."""
    return None if variable is None and file is None else secret(variable, file)


def mailbox(text: str) -> Address | None:
    """Return an address with or without a name; None where it is none, or more than one.

    Addresses are ASCII (xn--... for other domains), so that every server takes them; names need
    not be.
    """
    if not text.isprintable():
        return None
    try:
        header = SMTP.header_factory("to", text)
        (found,) = header.addresses
    except Exception:  # Python's parser of headers fails in ways of its own on what is no address
        return None
    spec = found.addr_spec
    is_whole = not header.defects and found.username and found.domain and spec.isascii()
    is_alone = header.groups[0].display_name is None and not found.domain.startswith(".")
    return found if is_whole and is_alone else None


def check_url(key: str, url: str) -> str:
    """Return an HTTP URL; raises GoodputError where it is none, without saying what it is."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or any(c.isspace() for c in url) or not url.isprintable():
        raise GoodputError(f"{key!r} is not a URL; expected like https://example.org/path.")
    if parts.username or parts.password:
        raise GoodputError(
            f"{key!r} carries a user or password; expected a URL without, and a token beside it."
        )
    return url


def refuse_token_in_the_clear(key: str, url: str, *tokens: str | None) -> None:
    """Raise GoodputError for what is no URL, or http with a token; tokens: their names, if any."""
    check_url(key, url)
    parts = urlsplit(url)
    has_token = any(one is not None for one in tokens)
    if has_token and parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise GoodputError(
            f"{key!r} is http, which would send the token in the clear; expected https."
        )


def refuse_two(where: str, what: str, variable: str | None, file: str | None) -> None:
    """Raise GoodputError where both an `_env` and a `_file` are given."""
    if variable is not None and file is not None:
        refuse_unless_one(where, what, variable, file)


def refuse_others(key: str, given: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    """Raise GoodputError for a name that is not known, or is given twice."""
    if len(set(given)) < len(given):
        raise GoodputError(f"{key!r} names something twice, expected each once.")
    for one in given:
        if one not in known:
            raise GoodputError(f"{key!r} is {one!r}, expected one of {', '.join(known)}.")


def refuse_outside(section: str, given: object, **ranges: tuple[int, int]) -> None:
    """Raise GoodputError for a key of settings that is set to a number outside its range."""
    for key, (least, most) in ranges.items():
        if (number := getattr(given, key)) is not None and not least <= number <= most:
            raise GoodputError(f"'{section}.{key}' is {number!r}, expected {least} to {most}.")


def refuse_unless_positive(key: str, number: float) -> None:
    """Raise GoodputError for a number of seconds that is not above 0."""
    if number <= 0:
        raise GoodputError(f"{key!r} is {number}, expected seconds above 0.")


def refuse_unless_one(where: str, what: str, *given: str | None) -> None:
    """Raise GoodputError unless exactly one of a plain key, an `_env` and a `_file` is given."""
    if sum(one is not None for one in given) != 1:
        plain = "" if what == "password" else f"{what}, " if len(given) == 3 else ""
        raise GoodputError(
            f"'{where}' needs one of {plain}{what}_env and {what}_file, and no second of them."
        )
