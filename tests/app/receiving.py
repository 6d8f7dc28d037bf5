"""A server with the routes of senders alone."""

import contextlib
import threading

import uvicorn
from starlette.applications import Starlette

from goodput_app.server.receive import receive_routes


@contextlib.contextmanager
def receiving(sources):
    """Serve the routes of these sources until the end of the block; yield the address."""
    app = Starlette(routes=receive_routes(list(sources)))
    config = uvicorn.Config(app, port=0, log_level="error")
    server, socket = uvicorn.Server(config), config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    host, port = socket.getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()
