"""Prometheus's API as a function from request to reply, with configurable faults."""

import json
import socket
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "up")
GPU = {
    "UUID": "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50", "Hostname": "gpu-a01", "gpu": "0",
    "modelName": "NVIDIA H100 80GB HBM3", "pci_bus_id": "00000000:19:00.0",
    "instance": "10.0.0.1:9400", "job": "dcgm",
}  # fmt: skip


def series(name, points, **labels):
    """Return one result of a matrix."""
    values = [[time_s, str(value)] for time_s, value in points]
    return {"metric": {"__name__": name, **GPU, **labels}, "values": values}


def said(data, **more):
    """Return an answer without an error."""
    return {"status": "success", "data": data, **more}


def matrix(*results, **more):
    """Return the answer to a range selector."""
    return said({"resultType": "matrix", "result": list(results)}, **more)


def vector(*results):
    """Return the answer to a query of one moment."""
    return said({"resultType": "vector", "result": list(results)})


@dataclass
class Reply:
    """What is answered; `cut` breaks the body off after so many bytes, `pause_s` is after each."""

    body: Any = field(default_factory=matrix)
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    is_reset: bool = False
    pause_s: float = 0

    def send(self, request):
        """Answer a request."""
        if self.is_reset:
            # a zero linger makes the kernel send RST instead of closing in order
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, *[0] * 7]))
            request.connection.close()
            return
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        own = {"Content-Type": self.kind, "Content-Length": str(len(body))}
        request.send_response(self.status)
        for name, value in (own | self.headers).items():
            request.send_header(name, value)
        request.end_headers()
        for piece in [bytes([byte]) for byte in body] if self.pause_s else [body[: self.cut]]:
            request.wfile.write(piece)
            threading.Event().wait(self.pause_s)


@dataclass
class Request:
    """What was asked: path, form or query fields, headers in lower case."""

    path: str
    fields: dict[str, str]
    headers: dict[str, str]

    def of_range(self):
        """Return the selector of samples that is asked for, and from when to when in seconds."""
        selector, length = self.fields["query"].rsplit("[", 1)
        until_s = float(self.fields["time"])
        return selector, until_s - int(length.removesuffix("ms]")) / 1000, until_s


@dataclass
class FakeServer:
    """The server, with all that was asked of it."""

    url: str = ""
    names: list[str] = field(default_factory=lambda: list(NAMES))
    targets: list[Any] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)
    answer: Callable[[Request], Reply] = lambda _: Reply()

    def queries(self):
        """Return what was asked of /api/v1/query."""
        return [request for request in self.asked if request.path == "/api/v1/query"]

    def reply(self, request):
        """Answer what every server can, and the rest as the test says."""
        url = urllib.parse.urlsplit(request.path)
        form = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(url.path, dict(urllib.parse.parse_qsl(url.query + form)), headers)
        self.asked.append(asked)
        known = {
            "/": Reply(b"ok", kind="text/plain"),
            "/api/v1/label/__name__/values": Reply(said(self.names)),
            "/api/v1/targets": Reply(said({"activeTargets": self.targets})),
        }
        (known.get(asked.path) or self.answer(asked)).send(request)


def remembering(results, limit=None):
    """Return an answer: what lies of results in the range that is asked for, or that it is much."""

    def answer(request):
        selector, from_s, until_s = request.of_range()
        found = [
            one | {"values": inside}
            for one in results
            if one["metric"]["__name__"] in selector
            and (inside := [point for point in one["values"] if from_s <= point[0] <= until_s])
        ]
        if limit and sum(len(one["values"]) for one in found) > limit:
            error = "query processing would load too many samples into memory in query execution"
            return Reply({"status": "error", "errorType": "execution", "error": error}, 422)
        return Reply(matrix(*found))

    return answer
