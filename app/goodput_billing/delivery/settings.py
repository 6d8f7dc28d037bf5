"""Where and when statements go out: `[report]`, `[report.mail]`, `[report.webhook]`.

Secrets never stand in goodput.toml: `*_env` names an environment variable, `*_file` a file.
"""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import ClassVar

import msgspec

from goodput_billing.delivery.checks import (
    check_url,
    mailbox,
    optional_secret,
    refuse_others,
    refuse_token_in_the_clear,
    refuse_two,
    refuse_unless_one,
    refuse_unless_positive,
    secret,
)
from goodput_queries.errors import GoodputError

FORMATS = ("csv", "parquet", "html", "pdf", "focus")
SECURITIES = ("starttls", "tls", "none")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An SMTP server and who gets the statement.

    security: starttls, tls (from the first byte) or none. port: unset: 587, 465 or 25 by it.
    ca_file: certificates that may sign the server's, instead of the system's. sender, to: as
    `goodput@example.org` or `Goodput <goodput@example.org>`. attach: formats that go along as
    files; attach_max_mb: their largest total size, others are omitted. timeout_s: how
    long the server may take for one answer.
    """

    section: ClassVar[str] = "report.mail"  # that errors name

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
        where = self.section
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
        refuse_others(f"{where}.security", [self.security], SECURITIES)
        refuse_others(f"{where}.attach", self.attach, FORMATS)
        if self.port is not None and not 0 < self.port < 65536:
            raise GoodputError(f"'{where}.port' is {self.port}, expected 1 to 65535.")
        refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
        if self.attach_max_mb < 0:
            raise GoodputError(f"'{where}.attach_max_mb' is below 0, expected megabytes.")
        if self.username is not None:
            refuse_unless_one(where, "password", self.password_env, self.password_file)
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
        refuse_unless_one(where, "url", self.url, self.url_env, self.url_file)
        refuse_two(where, "token", self.token_env, self.token_file)
        refuse_two(where, "secret", self.secret_env, self.secret_file)
        refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
        if self.url is not None:
            self._check(self.url)

    def target(self) -> str:
        """Return the URL, read now; raises GoodputError where it is missing or none."""
        if self.url is not None:
            return self.url
        return self._check(secret(self.url_env, self.url_file))

    def token(self) -> str | None:
        """Return the token, read now; None where none is set."""
        return optional_secret(self.token_env, self.token_file)

    def secret(self) -> str | None:
        """Return what posts are signed with, read now; None where none is set."""
        return optional_secret(self.secret_env, self.secret_file)

    def _check(self, url: str) -> str:
        refuse_token_in_the_clear("report.webhook.url", url, self.token_env, self.token_file)
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
        refuse_others("report.formats", self.formats, FORMATS)
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
