"""What `/metrics` has: every metric with its type, labels and meaning, and a collector of samples.

Label values are names that others chose: they are cut, and their number is limited where they come
from. Unknown is left out; it is not zero.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from prometheus_client import Metric
from prometheus_client.registry import Collector

Sample = tuple[Mapping[str, object], float | int | None]

LABEL_MAX_CHARS = 200


@dataclass(frozen=True)
class Family:
    """A metric: its name as it is queried, and the labels of each of its samples.

    otel_name, otel_unit: as it is pushed by OTLP, by the conventions of OpenTelemetry and UCUM.
    """

    name: str
    kind: str  # counter, gauge or info
    labels: tuple[str, ...]
    otel_name: str
    otel_unit: str
    meaning: str


def _declared() -> dict[str, Family]:
    """Return the metrics of `families.csv` by name."""
    file = files("goodput_app.server.metrics") / "families.csv"
    rows = csv.DictReader(file.read_text("utf-8").splitlines())
    found = [Family(**row | {"labels": tuple(row["labels"].split())}) for row in rows]
    return {family.name: family for family in found}


FAMILIES = _declared()


@dataclass(eq=False)  # the registry hashes it
class Samples(Collector):
    """The samples of one answer, by metric."""

    metrics: dict[str, Metric] = field(default_factory=dict)

    def add(self, name: str, samples: Iterable[Sample]) -> None:
        """Add samples of a metric; KeyError for one that is not declared with these labels."""
        family = FAMILIES[name]
        values: dict[tuple[str, ...], float] = {}
        for labels, value in samples:
            key = tuple(_label(labels[label]) for label in family.labels)
            if len(labels) != len(key):
                raise KeyError(f"{name} has the labels {', '.join(family.labels)}")
            if value is not None and math.isfinite(value):  # names that are cut may become equal
                values[key] = values.get(key, 0) + value
        if not values:
            return
        base = name.removesuffix("_total" if family.kind == "counter" else "_info")
        metric = Metric(base, family.meaning, family.kind)
        for key, value in values.items():
            metric.add_sample(name, dict(zip(family.labels, key, strict=True)), value)
        self.metrics[name] = metric

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics in the order of their declaration."""
        yield from (self.metrics[name] for name in FAMILIES if name in self.metrics)


def _label(value: object) -> str:
    """Return a label value; unknown is the empty value, which Prometheus takes for no label."""
    return "" if value is None else str(value)[:LABEL_MAX_CHARS]
