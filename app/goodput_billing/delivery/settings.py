"""Where and when statements go out: `[report]`, `[report.mail]`, `[report.webhook]`.

Secrets never stand in goodput.toml: `*_env` names an environment variable, `*_file` a file.
"""

from __future__ import annotations

import os
from datetime import time
from email.headerregistry import Address
from email.policy import SMTP
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from goodput_queries.errors import GoodputError
from goodput_queries.storage.remote import LOOPBACK_HOSTS

FORMATS = ("csv", "parquet", "html", "pdf", "focus")
SECURITIES = ("starttls", "tls", "none")
PORTS = {"starttls": 587, "tls": 465, "none": 25}
SECRET_MAX_CHARS = 4096


class MailSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An SMTP server and who gets the statement.

    security: starttls, tls (from the first byte) or none. port: unset: 587, 465 or 25 by it.
    ca_file: certificates that may sign the server's, instead of the system's. sender, to: as
    `goodput@example.org` or `Goodput <goodput@example.org>`. attach: formats that go along as
    files; attach_max_mb: their largest total size, others are omitted. timeout_s: how
    long the server may take for one answer.
    """

    host: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    port: int | None = None
    security: str = "starttls"
    username: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
    attach: tuple[str, ...] = ("pdf", "csv")
    attach_max_mb: int = 10
    timeout_s: int = 30

    def __post_init__(self) -> None:
        where = "report.mail"
        if not self.host or any(c.isspace() or c in "/@" for c in self.host):
            raise GoodputError(
                f"'{where}.host' is {self.host!r}, expected the name of an SMTP server."
            )
        if not self.to:
            raise GoodputError(f"'{where}.to' names nobody, expected a list of addresses.")
        for key, text in (("sender", self.sender), *(("to", one) for one in self.to)):
            if mailbox(text) is None:
                raise GoodputError(
                    f"'{where}.{key}' is {text!r}, expected an address like finance@example.org."
                )
        _refuse_others(f"{where}.security", [self.security], SECURITIES)
        _refuse_others(f"{where}.attach", self.attach, FORMATS)
        if self.port is not None and not 0 < self.port < 65536:
            raise GoodputError(f"'{where}.port' is {self.port}, expected 1 to 65535.")
        _refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
        if self.attach_max_mb < 0:
            raise GoodputError(f"'{where}.attach_max_mb' is below 0, expected megabytes.")
        if self.username is not None:
            _refuse_unless_one(where, "password", self.password_env, self.password_file)
            if self.security == "none":
                raise GoodputError(
                    f"'{where}.security' is 'none', which would send the password in the clear; "
                    "expected starttls or tls."
                )

    @property
    def origin(self) -> str:
        """Return server and port."""
        return f"{self.host}:{self.port or PORTS[self.security]}"

    def password(self) -> str:
        """Return the password, read now; raises GoodputError where it is missing."""
        return secret(self.password_env, self.password_file)


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a statement is posted as JSON.

    url, or url_env, url_file where the URL is a secret itself. token_env, token_file: sent as
    `Authorization: Bearer`. secret_env, secret_file: what the post is signed with. ca_file: as for
    mail. timeout_s: how long all of it may take.
    """

    url: str | None = None
    url_env: str | None = None
    url_file: str | None = None
    token_env: str | None = None
    token_file: str | None = None
    secret_env: str | None = None
    secret_file: str | None = None
    ca_file: str | None = None
    timeout_s: int = 15

    def __post_init__(self) -> None:
        where = "report.webhook"
        _refuse_unless_one(where, "url", self.url, self.url_env, self.url_file)
        for what, *given in (
            ("token", self.token_env, self.token_file),
            ("secret", self.secret_env, self.secret_file),
        ):
            if all(one is not None for one in given):
                _refuse_unless_one(where, what, *given)
        _refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
        if self.url is not None:
            self._check(self.url)

    def target(self) -> str:
        """Return the URL, read now; raises GoodputError where it is missing or none."""
        if self.url is not None:
            return self.url
        return self._check(secret(self.url_env, self.url_file))

    def token(self) -> str | None:
        """Return the token, read now; None where none is set."""
        return _optional_secret(self.token_env, self.token_file)

    def secret(self) -> str | None:
        """Return what posts are signed with, read now; None where none is set."""
        return _optional_secret(self.secret_env, self.secret_file)

    def _check(self, url: str) -> str:
        check_url("report.webhook.url", url)
        parts = urlsplit(url)
        has_token = self.token_env is not None or self.token_file is not None
        if has_token and parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
            raise GoodputError(
                "'report.webhook.url' is http, which would send the token in the clear; expected "
                "https."
            )
        return url


class ReportSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of statements by themselves.

    folder: where they are kept; unset: `<database>-statements` beside it. formats: what is written.
    at: the time of day, in the statement's zone, at which `goodput serve` delivers; unset: it does
    not. provisional: whether a day that is still open goes out too, marked so. dashboard_url,
    files_url: where readers find the dashboard and the folder; linked in mails and posts.
    """

    folder: str | None = None
    formats: tuple[str, ...] = FORMATS
    at: str | None = None
    provisional: bool = False
    dashboard_url: str | None = None
    files_url: str | None = None
    mail: MailSettings | None = None
    webhook: WebhookSettings | None = None

    def __post_init__(self) -> None:
        _refuse_others("report.formats", self.formats, FORMATS)
        if not self.formats:
            raise GoodputError(f"'report.formats' is empty, expected some of {', '.join(FORMATS)}.")
        for key, url in (("dashboard_url", self.dashboard_url), ("files_url", self.files_url)):
            if url is not None:
                check_url(f"report.{key}", url)
        for form in () if self.mail is None else self.mail.attach:
            if form not in self.formats:
                raise GoodputError(
                    f"'report.mail.attach' names {form}, which 'report.formats' does not; name it "
                    "there too."
                )
        self.time()

    def time(self) -> time | None:
        """Return the time of day of `at`."""
        if self.at is None:
            return None
        try:
            found = time.fromisoformat(self.at)
        except ValueError:
            found = None
        if found is None or found.tzinfo is not None:
            raise GoodputError(
                f"'report.at' is {self.at!r}, expected like 07:00 (in the zone of [statement])."
            )
        return found

    def folder_for(self, database: str | Path) -> Path:
        """Return the folder of a database's statements; raises GoodputError for one in memory."""
        if self.folder is not None:
            return Path(self.folder)
        if str(database) == ":memory:":
            raise GoodputError("a database in memory has no folder beside it; set 'report.folder'.")
        return Path(database).with_name(f"{Path(database).stem}-statements")


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


def _optional_secret(variable: str | None, file: str | None) -> str | None:
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
        raise GoodputError(f"{key!r} is no URL; expected like https://example.org/path.")
    if parts.username or parts.password:
        raise GoodputError(
            f"{key!r} carries a user or password; expected a URL without, and a token beside it."
        )
    return url


def _refuse_others(key: str, given: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    if len(set(given)) < len(given):
        raise GoodputError(f"{key!r} names something twice, expected each once.")
    for one in given:
        if one not in known:
            raise GoodputError(f"{key!r} is {one!r}, expected one of {', '.join(known)}.")


def _refuse_unless_positive(key: str, number: int) -> None:
    if number <= 0:
        raise GoodputError(f"{key!r} is {number}, expected seconds above 0.")


def _refuse_unless_one(where: str, what: str, *given: str | None) -> None:
    if sum(one is not None for one in given) != 1:
        plain = "" if what == "password" else f"{what}, " if len(given) == 3 else ""
        raise GoodputError(
            f"'{where}' needs one of {plain}{what}_env and {what}_file, and no second of them."
        )
