"""Sends with retries: transient failures are repeated with back-off, permanent ones are not."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from goodput_queries.errors import GoodputError

PAUSES_S = (2.0, 8.0, 30.0)  # then it is left to the next run
PAUSE_MAX_S = 60.0  # of what a server asks for: a command does not wait for hours
FIRST_BACKOFF_S, BACKOFF_MAX_S = 10.0, 600.0  # of a message in the outbox
DOUBLINGS_MAX = 10  # more come to the same, and a thousand are no number
Send = Callable[[tuple[str, ...]], tuple[str, ...]]


class NotSentError(GoodputError):
    """A channel did not take a message, or not for everybody.

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
    def wait_s(self) -> float:
        """Return how long the server asks to wait; 0: it does not say."""
        return self.error.wait_s if isinstance(self.error, NotSentError) else 0.0

    @property
    def is_for_later(self) -> bool:
        """Say whether the channel is away for now: what else there is to send would not go."""
        return isinstance(self.error, NotSentError) and self.error.is_transient


def attempt(send: Send, had: tuple[str, ...], number: int = 1) -> Sent:
    """Send once; return what came of it.

    send: takes who has it already, returns who has it then; raises NotSentError, or GoodputError
    where it cannot even begin (a secret that is not there). number: of the attempt.
    """
    try:
        return Sent(number, send(had))
    except GoodputError as error:
        more = error.recipients if isinstance(error, NotSentError) else ()
        return Sent(number, (*had, *(one for one in more if one not in had)), error)


def send_with_retry(send: Send, had: tuple[str, ...], wait: Callable[[float], bool]) -> Sent:
    """Send until it succeeds, fails permanently, or no retry is left; send, had: see `attempt`.

    wait: waits so many seconds; true where it is to end.
    """
    for number, pause_s in enumerate((*PAUSES_S, None), 1):
        sent = attempt(send, had, number)
        if pause_s is None or not sent.is_for_later:
            return sent
        had = sent.recipients
        if wait(max(pause_s, min(sent.wait_s, PAUSE_MAX_S))):
            return sent
    raise AssertionError  # the last pause is none


def back_off_s(failures: int, asked_s: float) -> float:
    """Return when to try a message again that waits in the outbox; asked_s: as its server says."""
    doublings = min(failures, DOUBLINGS_MAX)
    return max(min(FIRST_BACKOFF_S * 2.0**doublings, BACKOFF_MAX_S), asked_s)


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
