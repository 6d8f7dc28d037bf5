"""Who asks: in a page's script, in a route, and for a command of this machine.

`server.sign_in` resolves the person of each request once. A route runs in the request's context. A
script runs in a thread of its own, without it: there the identity comes with the WebSocket, in a
header that only the server itself can set and that Streamlit ties to the session
(`server.trustedUserHeaders`).
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from goodput_app.access.identity import LOCAL, Action, Identity, Role
from goodput_queries.errors import GoodputError

if TYPE_CHECKING:
    from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
HEADER, ADDRESS_HEADER = "X-Goodput-Identity", "X-Goodput-Address"
OWN_HEADERS = frozenset({HEADER.lower().encode(), ADDRESS_HEADER.lower().encode()})
USER_KEY = "goodput_identity"
TRUSTED_USER_HEADERS = {HEADER: USER_KEY}

_is_required = False
_of_request: ContextVar[Identity | None] = ContextVar("identity", default=None)
_address: ContextVar[str | None] = ContextVar("address", default=None)


class NotAllowedError(GoodputError):
    """Somebody asked for what none of their roles allows."""


def require_sign_in(*, is_required: bool) -> None:
    """Say whether people sign in to this process; without it everybody is `LOCAL`."""
    global _is_required  # noqa: PLW0603 -- of a process, as its store
    _is_required = is_required


def is_sign_in_required() -> bool:
    """Return whether people sign in to this process."""
    return _is_required


def current_identity() -> Identity:
    """Return who asks; raises NotAllowedError where people sign in and nobody did."""
    if not _is_required:
        return LOCAL
    context = _script()
    if context is not None:
        given = context.user_info.get(USER_KEY)
        if isinstance(given, str):
            return unpacked(given)
    elif (identity := _of_request.get()) is not None:
        return identity
    raise NotAllowedError("Nobody is signed in here.")


def current_address() -> str | None:
    """Return from where the person connects, None for a command of this machine."""
    if not _is_required:
        return None
    if _script() is None:
        return _address.get()
    import streamlit as st  # noqa: PLC0415 -- see _script

    return st.context.headers.get(ADDRESS_HEADER)


def require(action: Action) -> Identity:
    """Return who asks; raises NotAllowedError where they may not do that."""
    identity = current_identity()
    if not identity.may(action):
        roles = ", ".join(sorted(identity.roles))
        raise NotAllowedError(f"You may not {action.value} with the role {roles}.")
    return identity


@contextlib.contextmanager
def request_of(identity: Identity, address: str | None) -> Iterator[None]:
    """Make a person the one who asks for the length of a block, in this context."""
    tokens = _of_request.set(identity), _address.set(address)
    try:
        yield
    finally:
        _of_request.reset(tokens[0])
        _address.reset(tokens[1])


def carried(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Return a function that asks as who asks now, in whatever thread it runs later."""
    identity, address = current_identity(), current_address()

    def asking(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        with request_of(identity, address):
            return function(*args, **kwargs)

    return asking


def _script() -> ScriptRunContext | None:
    """Return the context of a page's script, None outside of one."""
    from streamlit.runtime.scriptrunner import get_script_run_ctx  # noqa: PLC0415 -- half a second that no command needs

    return get_script_run_ctx(suppress_warning=True)


def packed(identity: Identity) -> str:
    """Return an identity as the text of a header."""
    teams = None if identity.teams is None else sorted(identity.teams)
    fields = {"name": identity.name, "roles": sorted(identity.roles), "teams": teams}
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def unpacked(text: str) -> Identity:
    """Return the identity that `packed` wrote."""
    fields = json.loads(base64.urlsafe_b64decode(text))
    teams = None if fields["teams"] is None else frozenset(fields["teams"])
    return Identity(fields["name"], frozenset(map(Role, fields["roles"])), teams)
