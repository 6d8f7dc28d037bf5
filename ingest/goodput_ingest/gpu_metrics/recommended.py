"""The counters that DCGM exporters should export for us, and which of them one does not.

`recommended-counters.csv` is in the exporter's own format (`-f`, or the Helm chart's
`customMetrics`): field, Prometheus type, help.
"""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Final

from goodput_ingest.gpu_metrics.catalogue import resolve

COUNTERS_FILE: Final = Path(str(resources.files(__package__))) / "recommended-counters.csv"
LABEL: Final = "label"
NOT_ALWAYS_THERE: Final = ("xid_last", "xids_in_window")  # from the first Xid on


def missing_counters(names: Iterable[str]) -> list[str]:
    """Return the lines of the recommended file that a DCGM exporter with these metrics lacks.

    names: raw metric names of a scrape; none are DCGM's: nothing can be said
    """
    found = [metric for name in names if (metric := resolve(name)) and metric.vendor == "dcgm"]
    if not found:
        return []
    present = {metric.metric for metric in found} | set(NOT_ALWAYS_THERE)
    lines = COUNTERS_FILE.read_text("utf-8").splitlines()
    return [line for line in lines if (wanted := _metric(line)) and wanted not in present]


def _metric(line: str) -> str | None:
    """Return the canonical metric that a line asks for; None for comments and labels."""
    if not line.strip() or line.startswith("#"):
        return None
    field, kind, _ = (part.strip() for part in line.split(",", 2))
    known = resolve(field)
    return None if kind == LABEL or known is None else known.metric
