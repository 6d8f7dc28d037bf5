"""What `/metrics` has: every metric with its type, labels and meaning, and a collector of samples.

Label values are names that others chose: they are cut, and their number is limited where they come
from. Unknown is left out; it is not zero.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import Metric
from prometheus_client.registry import Collector

Sample = tuple[Mapping[str, object], float | int | None]

LABEL_MAX_CHARS = 200
WINDOW = "last 24 h of the cluster's ledger"


@dataclass(frozen=True)
class Family:
    """A metric: its name as it is queried, and the labels of each of its samples."""

    name: str
    kind: Literal["counter", "gauge", "info"]
    labels: tuple[str, ...]
    meaning: str


def _family(name: str, kind: Literal["counter", "gauge", "info"], labels: str, text: str) -> Family:
    return Family(f"goodput_{name}", kind, tuple(labels.split()), text)


def _ratio(name: str, text: str) -> Family:
    return _family(f"{name}ratio", "gauge", "cluster", f"{text}, {WINDOW}.")


_COUNTED = "cluster category team partition model"
_OBJECTIVE = "objective cluster team"
_ALL = (
    _family("info", "info", "version", "Version of Goodput."),
    _family("definition_version", "gauge", "", "Version of the definition of goodput."),
    _family("category_info", "info", "category group kind label", "Categories of GPU time."),
    _family(
        "gpu_seconds_total", "counter", _COUNTED,
        "GPU-seconds of settled hours by category; all categories add up to the capacity.",
    ),
    _family("counted_from_timestamp_seconds", "gauge", "cluster", "Start of the counted hours."),
    _family("counted_until_timestamp_seconds", "gauge", "cluster", "End of the counted hours."),
    _family(
        "revised_gpu_seconds", "gauge", "cluster category",
        "Counted hours as the ledger had them at the last count, less what was counted.",
    ),
    _family(
        "folded_label_values", "gauge", "cluster label",
        "Names of the last 30 days that are counted as other.",
    ),
    _family(
        "ledger_timestamp_seconds", "gauge", "cluster", "Time up to which a cluster has evidence."
    ),
    _family("gpus", "gauge", "cluster model", "GPUs in the inventory."),
    _family("capacity_gpu_seconds", "gauge", "cluster", f"Capacity, {WINDOW}."),
    _ratio("", "Goodput (of capacity)"),
    _ratio("high_", "Goodput if all unclassified time was useful"),
    _ratio("availability_", "Available share of the capacity"),
    _ratio("allocation_", "Allocated share of the available time"),
    _ratio("scheduling_", "Allocated time less gang waits, of the capacity"),
    _ratio("runtime_", "Retained step time, of the time of scheduling"),
    _ratio("runtime_high_", "The same if all unclassified time was retained step time"),
    _ratio("program_", "Useful share of the retained step time"),
    _ratio("coverage_", "Classified share of the allocated time"),
    _family(
        "headline_ratio", "gauge", "cluster rung",
        f"First tile of the dashboard, by its level of evidence, {WINDOW}.",
    ),
    _family(
        "window_gpu_seconds", "gauge", "cluster category group blame",
        f"GPU-seconds by category and cause, {WINDOW}.",
    ),
    _family(
        "window_cost", "gauge", "cluster category group blame currency",
        f"Cost of these GPU-seconds by the rate card, {WINDOW}.",
    ),
    _family(
        "team_allocated_gpu_seconds", "gauge", "cluster team", f"Allocated GPU-seconds, {WINDOW}."
    ),
    _family("team_ratio", "gauge", "cluster team", f"Goodput (of allocated time), {WINDOW}."),
    _family(
        "team_high_ratio", "gauge", "cluster team",
        f"The same if all unclassified time was useful, {WINDOW}.",
    ),
    _family("team_cost", "gauge", "cluster team currency", f"Cost of allocated time, {WINDOW}."),
    _family(
        "findings_open", "gauge", "cluster rule severity",
        "Open findings of the last 24 h; no label cluster: of several.",
    ),
    _family("findings_timestamp_seconds", "gauge", "", "When findings were last evaluated."),
    _family("objective_target_ratio", "gauge", _OBJECTIVE, "Goodput that an objective asks for."),
    _family("objective_ratio", "gauge", _OBJECTIVE, "Goodput in the days of an objective."),
    _family("objective_budget_spent_ratio", "gauge", _OBJECTIVE, "Spent part of the error budget."),
    _family(
        "objective_burn_rate", "gauge", f"{_OBJECTIVE} window",
        "How fast the error budget is spent; 1 spends it in the days of the objective.",
    ),
    _family("objective_burning", "gauge", _OBJECTIVE, "1: the budget burns too fast, else 0."),
    _family(
        "table_rows", "gauge", "table", "Rows of a stored table, as the database estimates them."
    ),
    _family("ingested_rows_total", "counter", "source", "New rows by source."),
    _family("rejected_rows_total", "counter", "source", "Rejected rows by source."),
    _family("ingest_timestamp_seconds", "gauge", "source", "Last load of a source."),
    _family("data_timestamp_seconds", "gauge", "source", "Latest time in the rows of a source."),
    _family(
        "live_source_age_seconds", "gauge", "source origin",
        "Since the last successful poll of a live source began.",
    ),
    _family("live_source_interval_seconds", "gauge", "source origin", "How often it is polled."),
    _family("live_source_failures", "gauge", "source origin", "Failed polls in a row."),
    _family(
        "live_source_rows_last_hour", "gauge", "source origin", "New rows in the last hour."
    ),
)  # fmt: skip
FAMILIES = {family.name: family for family in _ALL}


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
