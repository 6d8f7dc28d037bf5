"""Who asks, in this thread: whoever the sign-in named, else the local person."""

from __future__ import annotations

from contextvars import ContextVar

from goodput_app.access.identity import LOCAL, Identity

IDENTITY: ContextVar[Identity] = ContextVar("identity", default=LOCAL)


def current_identity() -> Identity:
    """Return whoever asks."""
    return IDENTITY.get()
