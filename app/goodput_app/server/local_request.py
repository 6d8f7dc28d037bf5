"""Whether a request comes from a process of this machine, and not through a proxy of it.

A proxy need not say that it is one: nginx by default sends none of the headers that name its
client, and the host of the address it passes on to. Where people sign in, a request with the
header that names a person, or from an address of `[access.proxy]`, is therefore never local.
"""

from starlette.requests import Request

from goodput_app.access.proxy import PROXY_HEADERS, address_of, is_within
from goodput_app.access.settings import AccessSettings
from goodput_queries.remote import LOOPBACK_HOSTS


def is_local(request: Request, access: AccessSettings) -> bool:
    """Say whether a process of this machine asks, whoever it asks for: see `may_be_local`."""
    address = address_of(request.client.host) if request.client is not None else None
    is_of_proxy = access.sign_in is not None and is_within(address, access.proxy.networks)
    return may_be_local(request, access) and not is_of_proxy


def may_be_local(request: Request, access: AccessSettings) -> bool:
    """Say whether a request shows no sign of a proxy or of another machine.

    A page in a browser that rebinds its own name to 127.0.0.1, or a proxy that names its client or
    a person, is refused; a silent proxy is not, so that a secret has to be asked for as well.
    """
    address = address_of(request.client.host) if request.client is not None else None
    foreign = PROXY_HEADERS
    if access.sign_in is not None:
        names = (access.proxy.name_header, access.proxy.groups_header)
        foreign = foreign | {name.lower().encode() for name in names}
    return (
        foreign.isdisjoint(name for name, _ in request.headers.raw)
        and address is not None
        and address.is_loopback
        and request.url.hostname in LOOPBACK_HOSTS
    )
