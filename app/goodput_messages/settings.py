"""Settings of a mail server, which statements and notifications share.

Secrets never stand in goodput.toml: `*_env` names an environment variable, `*_file` a file.
"""

from typing import ClassVar

import msgspec

from goodput_messages.checks import (
    mailbox,
    refuse_others,
    refuse_unless_one,
    refuse_unless_positive,
    secret,
)
from goodput_queries.errors import GoodputError

SECURITIES = ("starttls", "tls", "none")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An SMTP server and who gets the mail.

    security: starttls, tls (from the first byte) or none. port: unset: 587, 465 or 25 by it.
    ca_file: certificates that may sign the server's, instead of the system's. sender, to: as
    `goodput@example.org` or `Goodput <goodput@example.org>`. timeout_s: how long the server may
    take for one answer.
    """

    section: ClassVar[str]  # that errors name

    host: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    port: int | None = None
    security: str = "starttls"
    username: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
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
        if self.port is not None and not 0 < self.port < 65536:
            raise GoodputError(f"'{where}.port' is {self.port}, expected 1 to 65535.")
        refuse_unless_positive(f"{where}.timeout_s", self.timeout_s)
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
