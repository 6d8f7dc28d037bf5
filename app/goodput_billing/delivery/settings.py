"""Where and when statements go out: `[report]`, `[report.mail]`, `[report.webhook]`.

Secrets never stand in goodput.toml: `*_env` names an environment variable, `*_file` a file.
"""

from datetime import time
from pathlib import Path
from typing import ClassVar

import msgspec

from goodput_messages.checks import (
    check_url,
    optional_secret,
    refuse_others,
    refuse_token_in_the_clear,
    refuse_two,
    refuse_unless_one,
    refuse_unless_positive,
    secret,
)
from goodput_messages.http_post import Endpoint
from goodput_messages.settings import MailSettings
from goodput_queries.errors import GoodputError

WEBHOOK = "report.webhook"  # that errors name
FORMATS = ("csv", "parquet", "html", "pdf", "focus")


class StatementMail(MailSettings, frozen=True):
    """The mail server of statements, and who gets them.

    attach: formats that go along as files; attach_max_mb: their largest total size, others are
    omitted.
    """

    section: ClassVar[str] = "report.mail"

    attach: tuple[str, ...] = ("pdf", "csv")
    attach_max_mb: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_others(f"{self.section}.attach", self.attach, FORMATS)
        if self.attach_max_mb < 0:
            raise GoodputError(f"'{self.section}.attach_max_mb' is below 0, expected megabytes.")


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
        where = WEBHOOK
        refuse_unless_one(where, "url", self.url, self.url_env, self.url_file)
        refuse_two(where, "token", self.token_env, self.token_file)
        refuse_two(where, "secret", self.secret_env, self.secret_file)
        refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
        if self.url is not None:
            self._check(self.url)

    def endpoint(self) -> Endpoint:
        """Return the URL with its secrets, read now; raises GoodputError where one is missing."""
        return Endpoint(
            self.url or self._check(secret(self.url_env, self.url_file)),
            WEBHOOK,
            self.timeout_s,
            self.ca_file,
            optional_secret(self.token_env, self.token_file),
            optional_secret(self.secret_env, self.secret_file),
        )

    def _check(self, url: str) -> str:
        refuse_token_in_the_clear(f"{WEBHOOK}.url", url, self.token_env, self.token_file)
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
    mail: StatementMail | None = None
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
