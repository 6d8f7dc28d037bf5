"""Where the server listens: the address, a free port, and the URL that reaches it."""

import errno
import ipaddress
import socket

from goodput_queries.errors import GoodputError
from goodput_queries.remote import LOOPBACK_HOSTS

DEFAULT_ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8501
PORTS_TRIED = 100
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 -- compared with, not bound to


def listen(address: str, port: int | None) -> socket.socket:
    """Return a listening socket; without a port on 8501 or the next free one.

    Raises GoodputError where the address is not ours or the port is taken.
    """
    wanted = range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED) if port is None else [port]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    reason = "taken"
    for number in wanted:
        try:
            return socket.create_server((address, number), family=family, backlog=2048)
        except PermissionError:
            reason = "not for this user to take"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise GoodputError(
                    f"{address}: the server cannot listen there ({error.strerror}). "
                    "Name an address of this machine, such as --address 127.0.0.1."
                ) from error
    if port is None:
        raise GoodputError(
            f"{address}: ports {wanted[0]} to {wanted[-1]} are all {reason}. Name a free --port."
        )
    raise GoodputError(
        f"{address}: port {port} is {reason}. Name another --port, or none for the next free one."
    )


def covers_loopback(address: str) -> bool:
    """Say whether who listens there is reached under the loopback address too."""
    return address in EVERYWHERE | LOOPBACK_HOSTS


def is_loopback(address: str) -> bool:
    """Say whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def url_of(address: str, listening: socket.socket) -> str:
    """Return the URL at which a listening socket is reached from this machine."""
    port = listening.getsockname()[1]
    host = {"0.0.0.0": DEFAULT_ADDRESS, "::": "::1"}.get(address, address)  # noqa: S104 -- as above
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
