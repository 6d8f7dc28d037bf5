"""Whether a request comes from a process of this machine, and not through a proxy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_app.access.proxy import PROXY_HEADERS, address_of
from goodput_queries.storage.remote import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from starlette.requests import Request


def is_direct_and_local(request: Request) -> bool:
    """Say whether a process of this machine asks directly, under a loopback name.

    A page in a browser that rebinds its own name to 127.0.0.1, or a proxy that passes strangers on,
    does not.
    """
    address = address_of(request.client.host) if request.client is not None else None
    return (
        PROXY_HEADERS.isdisjoint(name for name, _ in request.headers.raw)
        and address is not None
        and address.is_loopback
        and request.url.hostname in LOOPBACK_HOSTS
    )
