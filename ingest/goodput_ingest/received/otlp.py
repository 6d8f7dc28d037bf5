"""OTLP over HTTP: metrics as protobuf or JSON, plain or gzip, posted to `/v1/metrics`.

A data point becomes the series that a Prometheus exporter would give: attributes of the point and
of its resource are labels (`host.name` is `host_name`), `service.name` is `job` and
`service.instance.id` is `instance` where it has a port; a histogram is its buckets, sum and count.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from goodput_ingest.prometheus_api.answer import NAME
from goodput_ingest.received.arrived import Arrived
from goodput_ingest.received.live import Received
from goodput_ingest.received.messages import message_class
from goodput_ingest.received.reply import RefusedError, Reply, gunzipped
from goodput_queries.errors import MissingExtraError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")
ENDED: Final = 1  # flag of a point without a value: the series has ended
DELTA: Final = 1  # AggregationTemporality
DIFFERENCES: Final = "its values are differences: set the exporter to cumulative temporality"
UNREAD: Final = "{} are not read: let the exporter send histograms with explicit bounds"
CODES: Final = {400: 3, 401: 16, 413: 3, 415: 3, 501: 12, 503: 14}  # of google.rpc.Code, by status


class OtlpMetrics(Received):
    """What SDKs and collectors of OpenTelemetry export."""

    name: ClassVar[str] = "otlp"
    path: ClassVar[str] = "/v1/metrics"

    def probe(self) -> list[str]:
        """Return nothing; raises MissingExtraError where its packages are not installed."""
        messages()
        return []

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Keep the data points of a request until they are loaded."""
        try:
            service = messages()
        except MissingExtraError as error:
            raise RefusedError(501, str(error)) from error
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding == "gzip":
            body = gunzipped(body, self.body_max_bytes)
        elif encoding != "identity":
            raise RefusedError(415, "the content encoding is not gzip.")
        request = service.ExportMetricsServiceRequest()
        try:
            if _kind(headers) == JSON:
                json_format.Parse(body, request, ignore_unknown_fields=True)
            else:
                request.ParseFromString(body)
        except (DecodeError, json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(400, "the body is not an ExportMetricsServiceRequest.") from error
        found = arrived(request)
        self.spool.add(found)
        reply = service.ExportMetricsServiceResponse()
        if found.rejects:
            reply.partial_success.rejected_data_points = len(found.rejects)
            reply.partial_success.error_message = found.rejects[0][0]
        return _reply(200, reply, headers)

    def refusal(self, headers: Mapping[str, str], status: int, sentence: str) -> Reply:
        """Return the answer to a request that is not taken: a google.rpc.Status."""
        return _reply(
            status, message_class("Status")(code=CODES.get(status, 2), message=sentence), headers
        )


def arrived(request: Any) -> Arrived:
    """Return the series of an ExportMetricsServiceRequest."""
    found = Arrived()
    for resource in request.resource_metrics:
        of = _labels(resource.resource.attributes)
        target = repr(sorted(of.items()))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                _add(found, target, of, metric)
    return found


def _add(found: Arrived, target: str, of: Mapping[str, str], metric: Any) -> None:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    reason = None
    if kind not in ("gauge", "sum", "histogram"):
        reason = UNREAD.format(kind.replace("_", " "))
    elif kind != "gauge" and data.aggregation_temporality == DELTA:
        reason = DIFFERENCES
    for point in data.data_points:
        labels = {**of, **_labels(point.attributes), NAME: metric.name}
        at = point.time_unix_nano // 1_000_000
        for one, value in _series(labels, point, kind):
            if reason is None:
                found.add(target, one, ((at, math.nan if point.flags & ENDED else value),))
            elif not found.has_no_reader(one):
                found.reject(reason, one)


def _series(
    labels: dict[str, str], point: Any, kind: str
) -> Iterable[tuple[dict[str, str], float]]:
    """Return the series of a point with their values; of what is not read one without."""
    if kind == "histogram":
        return _of_histogram(labels, point)
    value = point.WhichOneof("value") if kind in ("gauge", "sum") else None
    return ((labels, float(getattr(point, value)) if value else math.nan),)


def _of_histogram(labels: dict[str, str], point: Any) -> Iterator[tuple[dict[str, str], float]]:
    """Yield the series of a histogram as Prometheus has them: buckets hold those below, too."""
    name, below = labels[NAME], 0
    bounds = [*(f"{bound:g}" for bound in point.explicit_bounds), "+Inf"]
    for bound, count in zip(bounds, point.bucket_counts, strict=False):
        below += count
        yield {**labels, NAME: f"{name}_bucket", "le": bound}, float(below)
    yield {**labels, NAME: f"{name}_sum"}, point.sum
    yield {**labels, NAME: f"{name}_count"}, float(point.count)


def _labels(attributes: Iterable[Any]) -> dict[str, str]:
    """Return attributes as labels; those that are no plain value are left out."""
    found: dict[str, str] = {}
    for one in attributes:
        kind = one.value.WhichOneof("value")
        if kind in ("string_value", "int_value", "double_value", "bool_value"):
            found[NOT_IN_NAMES.sub("_", one.key)] = str(getattr(one.value, kind))
    if (job := found.pop("service_name", None)) is not None:
        found.setdefault("job", job)
    if ":" in (instance := found.pop("service_instance_id", "")):
        found.setdefault("instance", instance)
    return found


def _kind(headers: Mapping[str, str]) -> str:
    """Return the content type of a request, which is that of its answer."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise RefusedError(415, f"the content type is neither {PROTOBUF} nor {JSON}.")
    return kind


def _reply(status: int, message: Any, headers: Mapping[str, str]) -> Reply:
    if headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
        return Reply(status, json_format.MessageToJson(message, indent=None).encode(), JSON)
    return Reply(status, message.SerializeToString(), PROTOBUF)


def messages() -> Any:
    """Return the module of the messages; raises MissingExtraError where it is not installed."""
    try:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise MissingExtraError("OTLP", "receive") from error
    return metrics_service_pb2
