"""Prometheus remote-write 1.0: protobuf in a block of Snappy, posted to `/api/v1/write`.

Of 2.0 the answer is 415, with its headers that say that nothing was written, upon which a sender
falls back to 1.0 or its operator sets it.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa
from google.protobuf.message import DecodeError

from goodput_ingest.received.arrived import Arrived
from goodput_ingest.received.live import Received
from goodput_ingest.received.messages import message_class
from goodput_ingest.received.reply import RefusedError, Reply, too_long

NOTHING_WRITTEN: Final = {
    f"X-Prometheus-Remote-Write-{kind}-Written": "0"
    for kind in ("Samples", "Histograms", "Exemplars")
}
VERSION_2: Final = "io.prometheus.write.v2.request"
HISTOGRAMS: Final = "native histograms are not read"


class RemoteWrite(Received):
    """What Prometheus servers and agents write."""

    name: ClassVar[str] = "remote-write"
    path: ClassVar[str] = "/api/v1/write"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Keep the samples of a request until they are loaded."""
        kind = headers.get("content-type", "").lower().replace(" ", "")
        if VERSION_2 in kind:
            sentence = (
                "remote-write 2.0 is not read: set protobuf_message = prometheus.WriteRequest."
            )
            return Reply(415, f"{sentence}\n".encode(), "text/plain", dict(NOTHING_WRITTEN))
        if not kind.startswith("application/x-protobuf"):
            raise RefusedError(415, "the content type is not application/x-protobuf.")
        if headers.get("content-encoding", "snappy").lower() != "snappy":
            raise RefusedError(415, "the content encoding is not snappy.")
        self.spool.add(arrived(unpacked(body, self.body_max_bytes)))
        return Reply(204)

    def refusal(self, headers: Mapping[str, str], status: int, sentence: str) -> Reply:  # noqa: ARG002 -- as of OTLP
        """Return the answer to a request that is not taken."""
        return Reply(status, f"{sentence}\n".encode(), "text/plain")


def unpacked(body: bytes, max_bytes: int) -> bytes:
    """Return what a block of Snappy holds; raises RefusedError where it is none or too long."""
    size = shift = 0
    for byte in body[:5]:  # the block begins with its length, seven bits a byte
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > max_bytes:
        raise too_long(max_bytes)
    try:
        found: bytes = pa.decompress(body, size, codec="snappy", asbytes=True)
    except (OSError, ValueError) as error:
        raise RefusedError(400, "the body is not a block of Snappy.") from error
    return found


def arrived(data: bytes) -> Arrived:
    """Return what a WriteRequest has; raises RefusedError where the bytes are none."""
    request = message_class("WriteRequest")()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        raise RefusedError(400, "the body is not a WriteRequest of remote-write 1.0.") from error
    found = Arrived()
    for series in request.timeseries:
        labels = {label.name: label.value for label in series.labels}
        if series.histograms:
            if not found.has_no_reader(labels):
                found.reject(HISTOGRAMS, labels)
            continue
        target = f"{labels.get('job', '')}\n{labels.get('instance', '')}"
        found.add(target, labels, ((one.timestamp, one.value) for one in series.samples))
    return found
