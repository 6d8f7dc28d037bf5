"""Detects servers with series of several clusters, whose nodes and pods may share names."""

from collections.abc import Sequence

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.prometheus_api.bulk import selector
from goodput_ingest.prometheus_api.client import Client

# external labels that distinguish clusters on shared servers, as sites write them
CLUSTER_LABELS = ("cluster", "cluster_name", "k8s_cluster", "k8s_cluster_name", "cluster_id")
NAMES_ASKED = 3  # one metric would do, were it on each cluster
SHOWN = 5


def mixed_clusters(client: Client, names: Sequence[str], matchers: str) -> list[str]:
    """Return a sentence where series of these metrics, with these matchers, are of many clusters.

    Raises IngestError where the server refuses the question.
    """
    if not names:
        return []
    chosen = selector(names[:NAMES_ASKED], matchers)
    named = client.query(f"group by ({', '.join(CLUSTER_LABELS)}) ({chosen})").series
    for label in CLUSTER_LABELS:
        values = sorted({one.labels[label] for one in named if one.labels.get(label)})
        if len(values) > 1:
            shown = [json_lines.printable(value, 60) for value in values[:SHOWN]]
            more = ", ..." if len(values) > SHOWN else ""
            return [
                f"its series are of {len(values)} clusters ({label}: {', '.join(shown)}{more}); "
                f'take one with matchers = \'{label}="{shown[0]}"\' and cluster = "{shown[0]}", '
                "and each other in a [[collect]] of its own."
            ]
    return []
