"""The metrics of `/metrics` as a request of OTLP: the same samples under OpenTelemetry's names.

Counters are cumulative sums, all else are gauges. Labels are attributes: those for which semantic
conventions have a name get it, the others are under `goodput.`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.samples import Sample

from goodput_app.distribution import version
from goodput_app.server.metrics.families import FAMILIES, Family, Samples
from goodput_ingest.received.otlp import messages

ATTRIBUTES = {  # opentelemetry.io/docs/specs/semconv, by label
    "model": "hw.model",
    "table": "db.collection.name",
    "version": "service.version",
}
STARTS = {"goodput_gpu_seconds_total": "goodput_counted_from_timestamp_seconds"}
CUMULATIVE = 2  # AggregationTemporality
NS = 1_000_000_000

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Request:
    """Makes the requests of one process, which knows since when each counter counts.

    resource: its attributes.
    """

    resource: Mapping[str, str]
    _seen: dict[Series, tuple[int, float]] = field(default_factory=dict)  # start and last value
    _last_ns: int = 0

    def of(self, samples: Samples, at_ns: int) -> bytes:
        """Return the request for samples of a moment (nanoseconds since 1970).

        Raises MissingExtraError where the packages of OTLP are not installed.
        """
        request = messages().ExportMetricsServiceRequest()
        of_resource = request.resource_metrics.add()
        _add_attributes(of_resource.resource.attributes, self.resource)
        scope = of_resource.scope_metrics.add()
        scope.scope.name, scope.scope.version = "goodput", version()
        starts = _starts(samples)
        for name, family in FAMILIES.items():
            if name in samples.metrics:
                self._add(scope.metrics.add(), family, samples.metrics[name].samples, at_ns, starts)
        self._last_ns = at_ns
        return bytes(request.SerializeToString())

    def _add(
        self,
        metric: Any,
        family: Family,
        samples: list[Sample],
        at_ns: int,
        starts: Mapping[tuple[str, str], int],
    ) -> None:
        metric.name, metric.unit, metric.description = (
            family.otel_name, family.otel_unit, family.meaning,
        )  # fmt: skip
        is_counter = family.kind == "counter"
        if is_counter:
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, CUMULATIVE
        data = metric.sum if is_counter else metric.gauge
        for sample in samples:
            point = data.data_points.add(time_unix_nano=at_ns, as_double=sample.value)
            _add_attributes(point.attributes, attributes(sample.labels))
            if is_counter:
                known = starts.get((family.name, sample.labels.get("cluster", "")), at_ns)
                point.start_time_unix_nano = self._start_ns(sample, known)
            if (shown := sample.exemplar) is not None:
                exemplar = point.exemplars.add(as_double=shown.value)
                exemplar.time_unix_nano = int(float(shown.timestamp or 0) * NS)
                _add_attributes(exemplar.filtered_attributes, attributes(shown.labels))

    def _start_ns(self, sample: Sample, known_ns: int) -> int:
        """Return since when a counter counts: as is known, else since it was first pushed.

        One that went back counts since the push before: its old values are no part of it.
        """
        series: Series = (sample.name, tuple(sorted(sample.labels.items())))
        start_ns, before = self._seen.get(series, (known_ns, sample.value))
        if sample.value < before:
            start_ns = self._last_ns
        self._seen[series] = (start_ns, sample.value)
        return start_ns


def attributes(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as attributes; an empty one is none."""
    return {
        ATTRIBUTES.get(label, f"goodput.{label}"): value for label, value in labels.items() if value
    }


def _starts(samples: Samples) -> dict[tuple[str, str], int]:
    """Return since when counters count whose start is a metric itself, by name and cluster."""
    return {
        (name, sample.labels["cluster"]): int(sample.value * NS)
        for name, start in STARTS.items()
        if start in samples.metrics
        for sample in samples.metrics[start].samples
    }


def _add_attributes(to: Any, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        to.add(key=key).value.string_value = value
