"""A server of pages on 127.0.0.1, for what is scraped or asked over HTTP."""

import contextlib
import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def send(request, text, status=200, *, kind="text/plain; version=0.0.4", is_packed=False):
    """Answer a request with a text."""
    body = gzip.compress(text.encode()) if is_packed else text.encode()
    request.send_response(status)
    if is_packed:
        request.send_header("Content-Encoding", "gzip")
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


@contextlib.contextmanager
def serving(answer, tls=None, *, port=0):
    """Let `answer(request)` answer each GET and POST; yield host and port. port: 0 for any."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(ConnectionError):
                answer(self)

        do_POST = do_GET  # noqa: N815 -- the library's name

        def log_message(self, *_):
            """Keep quiet."""

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            """Keep quiet: clients hang up here."""

    http = Listener(("127.0.0.1", port), Handler)
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@dataclass
class Exporter:
    """A server of one page, which a test changes; `asked` are paths and headers of requests."""

    text: str = ""
    status: int = 200
    is_packed: bool = False
    address: str = ""  # host and port
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self):
        """Return where it listens."""
        return f"http://{self.address}"


@contextlib.contextmanager
def exporting(text=""):
    found = Exporter(text)

    def answer(request):
        found.asked.append((request.path, dict(request.headers)))
        send(request, found.text, found.status, is_packed=found.is_packed)

    with serving(answer) as found.address:
        yield found
