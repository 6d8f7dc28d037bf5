"""Requests as senders make them: remote-write of any series, OTLP by OpenTelemetry's own SDK."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from goodput_ingest.prometheus_api.answer import NAME
from goodput_ingest.received.messages import message_class
from goodput_ingest.received.remote_write import RemoteWrite

NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
NOON_MS = round(NOON.replace(tzinfo=UTC).timestamp() * 1000)
UTIL, POWER, UNKNOWN = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_OF_2030"
WRITE = {"content-type": "application/x-protobuf", "content-encoding": "snappy"}


def gpu(name, number=0, **more):
    """Return the labels of a GPU's series."""
    return {
        NAME: name, "UUID": f"GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f5{number}",
        "Hostname": "gpu-a01", "gpu": str(number), "instance": "10.0.0.1:9400", "job": "dcgm",
        **more,
    }  # fmt: skip


def written(*series):
    """Return a WriteRequest of (labels, [(second after noon, value)])."""
    request = message_class("WriteRequest")()
    for labels, points in series:
        one = request.timeseries.add()
        for name, value in labels.items():
            one.labels.add(name=name, value=value)
        for second, value in points:
            one.samples.add(timestamp=NOON_MS + round(second * 1000), value=value)
    return request.SerializeToString()


def packed(data):
    """Return bytes as a block of Snappy."""
    return pa.compress(data, codec="snappy", asbytes=True)


class Receiver:
    """A source whose requests arrive, and are polled, at seconds after noon."""

    def __init__(self, spool_of, kind=RemoteWrite, **settings):
        self.second = 0.0
        self.source = kind(spool_of(lambda: NOON_MS / 1000 + self.second), **settings)

    def write(self, *series, at=0.0):
        """Let a request arrive."""
        self.second = at
        return self.source.receive(WRITE, packed(written(*series)))

    def poll(self, store, at):
        """Load what a poll yields."""
        for batch in self.source.poll({}, NOON + timedelta(seconds=at)):
            store.load(batch)
