"""What only some may do: refused in the code that acts, and recorded once it is done."""

from __future__ import annotations

import contextlib
import getpass
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goodput_app.access import current
from goodput_app.access.identity import LOCAL, Action, Identity
from goodput_queries import audit
from goodput_queries.errors import GoodputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from goodput_queries.storage.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asker:
    """Who asks, and from where; of a download it is known when its button is drawn."""

    identity: Identity
    address: str | None

    @property
    def name(self) -> str:
        """Return the name of the sign-in; without one that of the user of this process."""
        return user_name() if self.identity is LOCAL else self.identity.name


def asker() -> Asker:
    """Return who asks; raises NotAllowedError where people sign in and nobody did."""
    return Asker(current.current_identity(), current.current_address())


@contextlib.contextmanager
def acting(
    store: Store, action: Action, subject: str | None, by: Asker | None = None
) -> Iterator[Asker]:
    """Let a block act for who asks, and record it afterwards.

    Raises NotAllowedError, before anything is done, for somebody without the role.
    """
    by = by or asker()
    current.require(action, by.identity)
    yield by
    write(store, by.name, action.value, subject, by.address)


def write(store: Store, who: str, action: str, subject: str | None, address: str | None) -> None:
    """Record an action; a full disk stops nobody, but is logged."""
    try:
        audit.record(store, who, action, subject, address)
    except GoodputError as error:
        log.error("the audit log lacks %r of %r: %s", action, who, error)


def user_name() -> str:
    """Return the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return "local"
