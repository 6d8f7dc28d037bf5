"""What only some may do: refused in the code that acts, and recorded once it is done."""

import contextlib
import getpass
import logging
from collections.abc import Iterator

from goodput_app.access import current
from goodput_app.access.identity import LOCAL, Action
from goodput_queries import audit
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError

log = logging.getLogger(__name__)


@contextlib.contextmanager
def acting(store: Store, action: Action, subject: str | None) -> Iterator[str]:
    """Let a block act for who asks, and record it afterwards; gives their name.

    Without a sign-in it is that of the user of this process. Raises NotAllowedError, before
    anything is done, for somebody without the role.
    """
    identity = current.require(action)
    who = user_name() if identity is LOCAL else identity.name
    yield who
    write(store, who, action.value, subject, current.current_address())


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
