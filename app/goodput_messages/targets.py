"""`[[notify]]` tables: where findings are sent, which ones, how they are grouped.

Secrets never stand in goodput.toml: `*_env` names an environment variable, `*_file` a file.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import msgspec

from goodput_messages.checks import (
    mailbox,
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
from goodput_queries.catalog.rules import SEVERITIES
from goodput_queries.errors import GoodputError

SECTION = "notify"
SENT = SEVERITIES[:2]  # of a note nobody is notified
GROUPS = ("rule", "severity", "cluster", "team", "node", "run")
NAME_MAX_CHARS = 80
CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
PLAIN_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")  # others could be an address of theirs


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="to"):
    """What all targets have.

    name: what state and errors call it; unset: its kind. rules, teams, clusters: only findings of
    these; empty: all. min_severity: only findings of this severity and above. group_by: findings
    that have these in common are one message. wait_s: how long a first finding of a group waits
    for others; a page does not. repeat_h, page_repeat_h: after how many hours an open ticket, an
    open page is sent again; 0: never.
    send_resolved: whether a finding that has closed by itself is sent. digest_at: when each day, as
    HH:MM in UTC, all open tickets are sent as one message, and at no other time; pages do not wait.
    """

    kind: ClassVar[str] = ""

    name: str = ""
    rules: tuple[str, ...] = ()
    min_severity: str = "ticket"
    teams: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ("rule", "cluster", "team")
    wait_s: float = 30.0
    repeat_h: float = 24.0
    page_repeat_h: float = 0.5
    send_resolved: bool = True
    digest_at: str | None = None
    timeout_s: int = 15
    ca_file: str | None = None

    def __post_init__(self) -> None:
        refuse_others(f"{SECTION}.min_severity", [self.min_severity], SENT)
        refuse_others(f"{SECTION}.group_by", self.group_by, GROUPS)
        refuse_unless_positive(f"{SECTION}.timeout_s", self.timeout_s)
        for key, number, unit in (
            ("wait_s", self.wait_s, "seconds"),
            ("repeat_h", self.repeat_h, "hours"),
            ("page_repeat_h", self.page_repeat_h, "hours"),
        ):
            if number < 0:
                raise GoodputError(f"'{SECTION}.{key}' is {number:g}, expected {unit} from 0 on.")
        if self.digest_at is not None and not CLOCK.fullmatch(self.digest_at):
            raise GoodputError(
                f"'{SECTION}.digest_at' is {self.digest_at!r}, expected a time in UTC such as "
                "'07:30'."
            )
        if len(self.name) > NAME_MAX_CHARS or not self.name.isprintable():
            raise GoodputError(
                f"'{SECTION}.name' is too long or not printable, expected up to "
                f"{NAME_MAX_CHARS} characters."
            )

    @property
    def label(self) -> str:
        """Return the name of the target, which its state is kept under."""
        return self.name or self.kind

    @property
    def severities(self) -> tuple[str, ...]:
        """Return the severities that are sent."""
        return SEVERITIES[: SEVERITIES.index(self.min_severity) + 1]

    def has_digest_since(self, begin_ms: int, now_ms: int) -> bool:
        """Say whether the time of the digest came after one moment, up to another; epoch ms."""
        hour, minute = map(int, (self.digest_at or "00:00").split(":"))
        time_ms = hour * HOUR_MS + minute * MINUTE_MS
        return (now_ms - time_ms) // DAY_MS * DAY_MS + time_ms > begin_ms


class HttpTarget(Target, frozen=True, kw_only=True):
    """A URL, or url_env, url_file where the URL is a secret itself."""

    url: str | None = None
    url_env: str | None = None
    url_file: str | None = None
    token_env: str | None = None
    token_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_one(SECTION, "url", self.url, self.url_env, self.url_file)
        refuse_two(SECTION, "token", self.token_env, self.token_file)
        if self.url is not None:
            self._check(self.url)

    def endpoint(self) -> Endpoint:
        """Return the URL with its secrets, read now; raises GoodputError where one is missing."""
        url = self.url or self._check(secret(self.url_env, self.url_file))
        token = optional_secret(self.token_env, self.token_file)
        return Endpoint(url, SECTION, self.timeout_s, self.ca_file, token)

    def _check(self, url: str) -> str:
        refuse_token_in_the_clear(f"{SECTION}.url", url, self.token_env, self.token_file)
        return url


class Alertmanager(HttpTarget, frozen=True, kw_only=True, tag="alertmanager"):
    """An Alertmanager, which groups and repeats by its own routes.

    url: where `/api/v2/alerts` is. expires_s: after how long without a word from us it takes an
    alert for resolved; alerts are sent again three times in that time.
    """

    kind: ClassVar[str] = "alertmanager"

    group_by: tuple[str, ...] = ()
    expires_s: float = 900.0

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_positive(f"{SECTION}.expires_s", self.expires_s)
        if self.digest_at is not None:
            raise GoodputError(
                f"'{SECTION}.digest_at' is not for an Alertmanager, which sends by its own routes."
            )


class Webhook(HttpTarget, frozen=True, kw_only=True, tag="webhook"):
    """A URL that takes our JSON. secret_env, secret_file: what the post is signed with."""

    kind: ClassVar[str] = "webhook"

    secret_env: str | None = None
    secret_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_two(SECTION, "secret", self.secret_env, self.secret_file)

    def endpoint(self) -> Endpoint:
        """Return the URL with its secrets, the signing secret too."""
        plain = super().endpoint()
        signing = optional_secret(self.secret_env, self.secret_file)
        return replace(plain, secret=signing)


class Slack(HttpTarget, frozen=True, kw_only=True, tag="slack"):
    """An incoming webhook of Slack, or of what takes the same form (Mattermost)."""

    kind: ClassVar[str] = "slack"


class Teams(HttpTarget, frozen=True, kw_only=True, tag="teams"):
    """A workflow of Microsoft Teams that takes an adaptive card."""

    kind: ClassVar[str] = "teams"


class MailServer(MailSettings, frozen=True):
    """The mail server and recipients of one message."""

    section: ClassVar[str] = SECTION


class MailTarget(Target, frozen=True, kw_only=True):
    """An SMTP server; without a host that of `[report.mail]`, with its sender and login."""

    host: str = ""
    sender: str = ""
    port: int | None = None
    security: str = "starttls"
    username: str | None = None
    password_env: str | None = None
    password_file: str | None = None

    def server(self, to: tuple[str, ...], default: MailSettings | None) -> MailServer:
        """Return the server for these recipients; raises GoodputError where none is named."""
        if not self.host and default is None:
            raise GoodputError(
                f"'{SECTION}.host' is not set, expected the name of an SMTP server, here or in "
                "[report.mail]."
            )
        given = self if self.host or default is None else default
        return MailServer(
            host=given.host, sender=self.sender or given.sender, to=to, port=given.port,
            security=given.security, username=given.username, password_env=given.password_env,
            password_file=given.password_file, ca_file=given.ca_file, timeout_s=given.timeout_s,
        )  # fmt: skip


class Mail(MailTarget, frozen=True, kw_only=True, tag="mail"):
    """Mail to people who look after the fleet."""

    kind: ClassVar[str] = "mail"

    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.addresses:
            raise GoodputError(f"'{SECTION}.addresses' names nobody, expected a list of addresses.")
        _refuse_no_addresses(self.addresses)


class Owner(MailTarget, frozen=True, kw_only=True, tag="owner"):
    """Mail to the user whose job a finding is about, of findings that its team can mend.

    address: with `{user}`, such as `{user}@example.org`. addresses: of users that have another one.
    max_per_day: messages to one user in 24 hours; what comes after waits.
    """

    kind: ClassVar[str] = "owner"

    address: str | None = None
    addresses: dict[str, str] = {}
    max_per_day: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address is None and not self.addresses:
            raise GoodputError(
                f"'{SECTION}.address' is not set, expected like {{user}}@example.org, or a table "
                f"{SECTION}.addresses."
            )
        if self.address is not None and (
            "{user}" not in self.address or mailbox(self.address.replace("{user}", "u")) is None
        ):
            raise GoodputError(
                f"'{SECTION}.address' is {self.address!r}, expected like {{user}}@example.org."
            )
        _refuse_no_addresses(self.addresses.values())
        if self.max_per_day < 1:
            raise GoodputError(
                f"'{SECTION}.max_per_day' is {self.max_per_day}, expected a number from 1 on."
            )

    def address_of(self, user: str | None) -> str | None:
        """Return where a user gets mail; None where that is not known."""
        if user is None or user in self.addresses:
            return None if user is None else self.addresses[user]
        if self.address is None or PLAIN_USER.fullmatch(user) is None:
            return None
        return self.address.replace("{user}", user)


AnyTarget = Alertmanager | Webhook | Slack | Teams | Mail | Owner
KINDS: dict[str, type[Target]] = {
    one.kind: one for one in (Alertmanager, Webhook, Slack, Teams, Mail, Owner)
}


def refuse_equal_targets(targets: Iterable[Target]) -> None:
    """Raise GoodputError where two targets have one name: what was sent is kept by name."""
    seen = set[str]()
    for one in targets:
        if one.label in seen:
            raise GoodputError(
                f"two [[notify]] tables are named {one.label!r}, expected a 'name' of its own each."
            )
        seen.add(one.label)


def _refuse_no_addresses(addresses: Iterable[str]) -> None:
    for one in addresses:
        if mailbox(one) is None:
            raise GoodputError(
                f"'{SECTION}.addresses' has {one!r}, expected an address like ops@example.org."
            )
