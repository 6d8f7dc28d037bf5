"""Sends with retries: transient failures are repeated with back-off, permanent ones are not."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goodput_queries.errors import GoodputError

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSES_S = (2.0, 8.0, 30.0)  # then it is left to the next run
PAUSE_MAX_S = 60.0  # of what a server asks for: a command does not wait for hours


class NotSentError(GoodputError):
    """A channel did not take a statement, or not for everybody.

    is_transient: it may take it later. wait_s: when, as it says. recipients: who has it all the
    same.
    """

    def __init__(
        self,
        sentence: str,
        *,
        is_transient: bool = False,
        wait_s: float = 0.0,
        recipients: tuple[str, ...] = (),
    ) -> None:
        super().__init__(sentence)
        self.is_transient = is_transient
        self.wait_s = wait_s
        self.recipients = recipients


@dataclass(frozen=True)
class Sent:
    """What came of sending: how many attempts it took, who has it, and why not all of it went."""

    attempts: int
    recipients: tuple[str, ...]
    error: GoodputError | None = None

    @property
    def is_for_later(self) -> bool:
        """Say whether the channel is away for now: what else there is to send would not go."""
        return isinstance(self.error, NotSentError) and self.error.is_transient


def send_with_retry(
    send: Callable[[tuple[str, ...]], tuple[str, ...]],
    had: tuple[str, ...],
    wait: Callable[[float], bool],
) -> Sent:
    """Send until it succeeds, fails permanently, or no retry is left.

    send: takes who has it already, returns who has it then; raises NotSentError, or GoodputError
    where it cannot even begin. wait: waits so many seconds; true where it is to end.
    """
    for number, pause_s in enumerate((*PAUSES_S, None), 1):
        try:
            return Sent(number, send(had))
        except NotSentError as error:
            had = (*had, *(one for one in error.recipients if one not in had))
            if not error.is_transient or pause_s is None:
                return Sent(number, had, error)
            if wait(max(pause_s, min(error.wait_s, PAUSE_MAX_S))):
                return Sent(number, had, error)
        except GoodputError as error:  # a secret that is not there
            return Sent(number, had, error)
    raise AssertionError  # the last pause is none


def trusted(ca_file: str | None, section: str) -> ssl.SSLContext:
    """Return which certificates count: those of a file, else the system's."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # SSLError is one
        raise NotSentError(
            f"{ca_file}: the certificates in it cannot be read ({error.strerror or error}); see "
            f"ca_file of [{section}]."
        ) from error


def tls_error(error: ssl.SSLError) -> str:
    """Return the reason of a TLS error, as OpenSSL reports it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.reason or str(error)
