"""Exemplars of the counted GPU time: the largest open finding of each cluster and category.

Only counters and buckets of histograms may have exemplars in OpenMetrics. The rule of a finding
names the categories of time that are its loss.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import Metric
from prometheus_client.samples import Exemplar, Sample

from goodput_app.server.metrics.families import Samples

COUNTER = "goodput_gpu_seconds_total"
CHARS_MAX = 128  # of names and values of an exemplar's labels, by OpenMetrics


def add_exemplars(samples: Samples, findings: Iterable[Mapping[str, Any]], at_s: float) -> None:
    """Give series of the counter the findings that lost such time, the first of each.

    findings: open ones, the largest first, with cluster, categories, team, rule, finding_key and
    gpu_ms. at_s: when they were evaluated, since 1970. Of the series of a cluster and category the
    largest gets it, of the finding's team where that has one.
    """
    counter = samples.metrics.get(COUNTER)
    if counter is None:
        return
    series: dict[tuple[str, str], list[Sample]] = {}
    for one in counter.samples:
        series.setdefault((one.labels["cluster"], one.labels["category"]), []).append(one)
    marked: dict[tuple[str, str], tuple[Sample, Exemplar]] = {}
    for row in findings:
        labels = {"finding": row["finding_key"], "rule": row["rule"]}
        if not row["gpu_ms"] or sum(map(len, (*labels, *labels.values()))) > CHARS_MAX:
            continue
        for category in row["categories"]:
            key = (row["cluster"], category)
            if key in series and key not in marked:
                largest = _largest(series[key], row["team"])
                marked[key] = (largest, Exemplar(labels, row["gpu_ms"] / 1000, at_s))
    of_series = {id(one): exemplar for one, exemplar in marked.values()}
    answer = Metric(counter.name, counter.documentation, counter.type)  # that one is kept
    answer.samples = [one._replace(exemplar=of_series.get(id(one))) for one in counter.samples]
    samples.metrics[COUNTER] = answer


def _largest(series: list[Sample], team: str | None) -> Sample:
    """Return the one with most time; those of the team come first."""
    return max(series, key=lambda one: (one.labels["team"] == team, one.value))
