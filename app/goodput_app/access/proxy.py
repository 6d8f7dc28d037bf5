"""Sign-in by a trusted proxy: the headers that name a person, and from whom they are taken."""

import ipaddress
from collections.abc import Iterable
from contextlib import suppress

from goodput_app.access.members import Person, RefusedError, person_of
from goodput_app.access.settings import Network, ProxySettings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Headers = Iterable[tuple[bytes, bytes]]

FORWARDED_FOR = b"x-forwarded-for"
PROXY_HEADERS = frozenset({b"forwarded", FORWARDED_FOR, b"x-real-ip"})  # no direct request has one


def address_of(text: str) -> Address | None:
    """Return an IP address, an IPv4 one where IPv6 wraps it; None for what is none."""
    with suppress(ValueError):
        address = ipaddress.ip_address(text)
        return getattr(address, "ipv4_mapped", None) or address
    return None


def is_within(address: Address | None, networks: Iterable[Network]) -> bool:
    """Say whether an address is in one of the networks."""
    return address is not None and any(address in network for network in networks)


class TrustedProxy:
    """Reads the person out of the headers of the proxy."""

    def __init__(self, proxy: ProxySettings) -> None:
        self._networks = proxy.networks
        self._name = proxy.name_header.lower().encode()
        self._groups = proxy.groups_header.lower().encode()

    def person(self, peer: str, headers: Headers) -> Person:
        """Return who signed in; raises RefusedError for anything but one name from the proxy."""
        if not is_within(address_of(peer), self._networks):
            raise RefusedError("Only the proxy of [access.proxy] may connect here.")
        headers = list(headers)
        names = _texts(headers, self._name)
        if len(names) != 1:
            raise RefusedError(f"The proxy sent {len(names)} headers {self._name.decode()}, not 1.")
        groups = [
            group.strip() for text in _texts(headers, self._groups) for group in text.split(",")
        ]
        return person_of(names[0], [group for group in groups if group])

    def client(self, peer: str, headers: Headers) -> str:
        """Return from where a person connects: the last address that the proxy did not add."""
        if not is_within(address_of(peer), self._networks):
            return peer
        hops = [hop.strip() for text in _texts(headers, FORWARDED_FOR) for hop in text.split(",")]
        for hop in reversed(hops):
            address = address_of(hop)
            if address is None:
                break
            if not is_within(address, self._networks):
                return str(address)
        return peer


def _texts(headers: Headers, name: bytes) -> list[str]:
    """Return the values of a header; raises RefusedError for one that is not UTF-8."""
    try:
        return [value.decode() for key, value in headers if key.lower() == name]
    except UnicodeDecodeError:
        raise RefusedError(f"The header {name.decode()} is not UTF-8.") from None
