"""Servers to ask: a scripted one with configurable faults, a real Prometheus with an exporter."""

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.ingest.http_pages import send, serving
from tests.until import until

JSON = "application/json"
WAIT_S = 60
NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "up")
GPU = {
    "UUID": "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50",
    "Hostname": "gpu-a01",
    "gpu": "0",
    "modelName": "NVIDIA H100 80GB HBM3",
    "pci_bus_id": "00000000:19:00.0",
    "instance": "10.0.0.1:9400",
    "job": "dcgm",
}


def series(name, points, **labels):
    """Return one result of a matrix."""
    return {
        "metric": {"__name__": name, **GPU, **labels},
        "values": [[time_s, str(value)] for time_s, value in points],
    }


def matrix(*results, **more):
    """Return the answer to a range selector."""
    return {
        "status": "success",
        "data": {"resultType": "matrix", "result": list(results)},
        **more,
    }


@dataclass
class Request:
    """What was asked: path, form or query fields, headers in lower case."""

    path: str
    fields: dict[str, str]
    headers: dict[str, str]


@dataclass
class Reply:
    """What is answered; `cut` breaks the body off after so many bytes, `pause_s` is after each."""

    body: Any = field(default_factory=matrix)
    status: int = 200
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    is_reset: bool = False
    pause_s: float = 0

    def content(self):
        """Return the body as bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class FakeServer:
    """Prometheus's API as a function from request to reply, with all that was asked of it."""

    url: str = ""
    names: dict[str, Any] = field(
        default_factory=lambda: {"status": "success", "data": list(NAMES)}
    )
    asked: list[Request] = field(default_factory=list)
    answer: Callable[[Request], Reply] = lambda _: Reply()

    def queries(self):
        """Return what was asked of /api/v1/query."""
        return [request for request in self.asked if request.path == "/api/v1/query"]

    def reply_to(self, request):
        """Answer what every server can, and the rest as the test says."""
        self.asked.append(request)
        if request.path == "/":
            return Reply(b"ok", kind="text/plain")
        if request.path == "/api/v1/label/__name__/values":
            return Reply(self.names)
        if request.path == "/api/v1/targets":
            return Reply({"status": "success", "data": {"activeTargets": []}})
        return self.answer(request)


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self._reply(urllib.parse.urlsplit(self.path).query)

        def do_POST(self):
            self._reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _reply(self, form):
            request = Request(
                urllib.parse.urlsplit(self.path).path,
                dict(urllib.parse.parse_qsl(form)),
                {name.lower(): value for name, value in self.headers.items()},
            )
            reply = server.reply_to(request)
            if reply.is_reset:
                # a zero linger makes the kernel send RST instead of closing in order
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.connection.close()
                self.close_connection = True
                return
            content = reply.content()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            sent = content if reply.cut is None else content[: reply.cut]
            for at in range(0, len(sent), 1 if reply.pause_s else max(len(sent), 1)):
                self.wfile.write(sent[at : at + 1] if reply.pause_s else sent)
                threading.Event().wait(reply.pause_s)
            if reply.cut is not None:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True

        def log_message(self, *_):
            """Keep quiet."""

    return Handler


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    answers: FakeServer

    def handle_error(self, *_):
        """Keep quiet: clients hang up here."""


@pytest.fixture
def fake_listener():
    """Give the listener behind `fake`."""
    server = FakeServer()
    http = _Listener(("127.0.0.1", 0), _handler(server))
    http.answers = server
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def fake(fake_listener):
    """Give a server of the test's own."""
    return fake_listener.answers


@pytest.fixture
def reply_types():
    """Give what replies are made of; test files of a folder cannot import its conftest."""
    return SimpleNamespace(Reply=Reply, matrix=matrix, series=series)


@dataclass
class Exporter:
    """Something to be scraped: `text` is what it prints; counts how often it was."""

    url: str = ""
    text: str = ""
    is_failing: bool = False
    scrapes: int = 0


@pytest.fixture
def exporter():
    """Give a fake exporter on a port of its own."""
    found = Exporter()

    def answer(request):
        found.scrapes += 1
        send(request, "" if found.is_failing else found.text, 500 if found.is_failing else 200)

    with serving(answer) as found.url:
        yield found


@dataclass
class RealPrometheus:
    """A running server: its URL and how to stop and start it on the same data."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self):
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Start it and wait until it answers."""
        self.process = subprocess.Popen(
            [
                shutil.which("prometheus") or "prometheus",
                f"--config.file={self.folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.until(lambda: self.get("/-/ready") is not None, "it is ready")

    def stop(self):
        """Stop it in order, so that its data stays."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(WAIT_S)
            self.process = None

    def get(self, path):
        """Return what it answers; None where it does not."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as response:  # noqa: S310
                return bytes(response.read())
        except (urllib.error.URLError, ConnectionError):
            return None

    def samples(self, selector):
        """Return (name, time, value) of raw samples, by a client that is not ours."""
        answer = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": selector}))
        results = json.loads(answer or b"{}")["data"]["result"]
        return sorted(
            (result["metric"]["__name__"], time_s, value)
            for result in results
            for time_s, value in result["values"]
        )

    @staticmethod
    def until(is_so, what):
        """Wait for something that comes; fail where it does not."""
        until(is_so, what, within_s=WAIT_S)


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def prometheus_of(tmp_path):
    """Give what starts a real server for a job and its target; skip where none is installed."""
    if shutil.which("prometheus") is None:
        pytest.skip("the program prometheus is not installed (apt-get install prometheus)")
    server = RealPrometheus(tmp_path, free_port())

    def started(job, target, interval="200ms", more=""):
        (tmp_path / "prometheus.yml").write_text(
            f"""global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}
scrape_configs:
  - job_name: {job}
    static_configs: [{{targets: ["{target}"]}}]
{more}"""
        )
        server.start()
        return server

    try:
        yield started
    finally:
        server.stop()


@pytest.fixture
def prometheus(prometheus_of, exporter):
    """Give a real server that scrapes the exporter five times a second."""
    return prometheus_of("dcgm", exporter.url)


@pytest.fixture
def node_exporter():
    """Give host and port of a real node_exporter; skip where none is installed."""
    program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if program is None:
        pytest.skip("node_exporter is missing (apt-get install prometheus-node-exporter)")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [program, f"--web.listen-address={address}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_ready():
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"http://{address}/", timeout=5).close()
            return True
        return False

    try:
        RealPrometheus.until(is_ready, "node_exporter answers")
        yield address
    finally:
        process.terminate()
        process.wait(WAIT_S)
