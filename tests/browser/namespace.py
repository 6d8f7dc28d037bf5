"""A server in a network namespace of its own: it reaches no other host, only a relay reaches it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.app.receivers import free_port
from tests.until import until

PORT = "8501"  # of the namespace, where nothing else listens
INSIDE = (
    "ip link set lo up && { socat UNIX-LISTEN:$0,fork TCP:127.0.0.1:"
    + PORT
    + ' & exec "$@" --port '
    + PORT
    + "; }"
)


@cache
def why_not():
    """Return why this machine cannot do it, None where it can."""
    if missing := [name for name in ("unshare", "ip", "socat") if shutil.which(name) is None]:
        return f"no {', '.join(missing)} on this machine"
    tried = subprocess.run(
        ["unshare", "-rn", "ip", "link", "set", "lo", "up"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"unshare: {tried.stderr.strip()}"


@contextlib.contextmanager
def serving_alone(database):
    """Serve a database without any network; give the URL of the relay."""
    port = free_port()
    goodput = str(Path(sys.executable).with_name("goodput"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = f"{folder}/relay"
        server = stack.enter_context(
            subprocess.Popen(["unshare", "-rn", "sh", "-c", INSIDE, path, goodput, "serve", "--db",
                              database], stdout=subprocess.PIPE, text=True, start_new_session=True),
        )  # fmt: skip
        stack.callback(os.killpg, server.pid, signal.SIGKILL)
        assert server.stdout.readline().strip().endswith(f":{PORT}")
        listen = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr"
        relay = stack.enter_context(subprocess.Popen(["socat", listen, f"UNIX-CONNECT:{path}"]))
        stack.callback(relay.kill)
        until(lambda: _listens(port), f"something listens on port {port}")
        yield f"http://127.0.0.1:{port}"


def _listens(port):
    """Say whether something listens there."""
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False
