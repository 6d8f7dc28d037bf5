"""A server of pages on 127.0.0.1, for what is scraped or asked over HTTP."""

import contextlib
import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def send(request, text, status=200, *, is_packed=False):
    """Answer a request with a text."""
    body = gzip.compress(text.encode()) if is_packed else text.encode()
    request.send_response(status)
    if is_packed:
        request.send_header("Content-Encoding", "gzip")
    request.send_header("Content-Type", "text/plain; version=0.0.4")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


@contextlib.contextmanager
def serving(answer):
    """Let `answer(request)` answer each GET; yield host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(ConnectionError):
                answer(self)

        def log_message(self, *_):
            """Keep quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
