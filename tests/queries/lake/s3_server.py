"""An S3 server on the loopback (moto) for a lake: `python -m tests.queries.lake.s3_server`.

It prints its URL. Requests are answered one after the other: moto looks whether an object is there
and then stores it, and a conditional put must be one step. A process of its own, since calls of
deltalake hold the interpreter.
"""

import contextlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx

BUCKET = "metrics"
ACCESS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}


@contextlib.contextmanager
def s3_server():
    """Run a server with an empty bucket; yield the environment by which it is reached."""
    process = subprocess.Popen([sys.executable, "-m", __spec__.name if __spec__ else __name__],
                               cwd=Path(__file__).parents[3],
                               env={k: v for k, v in os.environ.items()
                                    if not k.startswith("AWS_")}, stdout=subprocess.PIPE,
                               text=True)  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        httpx.put(f"{url}/{BUCKET}").raise_for_status()
        yield {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", **ACCESS}
    finally:
        process.kill()
        process.communicate()


def main():
    """Serve until killed."""
    from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415
    from werkzeug.serving import make_server  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ, start_response):
        with one_at_a_time:
            return application(environ, start_response)

    server = make_server("127.0.0.1", 0, answer, threaded=True)  # type: ignore[arg-type]
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
