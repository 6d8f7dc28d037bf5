"""The order of test modules: those that wait for other programs come one at a time.

Modules of a folder follow each other, and processes take them in their order: where the modules
that start Prometheus or Slurm are in one folder, all processes wait for such programs at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

WAITING = (
    "test_contributing",  # its commands run one by one; at the end nothing would be left beside it
    "test_grafana_dashboards",
    "test_kubernetes_real_server",
    "test_prometheus_hosts",
    "test_prometheus_real_server",
    "test_prometheus_serving",
    "test_slurm_live",
)


def spread(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in their order, with modules of WAITING at equal distances among them."""
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    waiting = [path for path in modules if path.stem in WAITING]
    others = [path for path in modules if path.stem not in WAITING]
    distance = max(1, len(others) // (len(waiting) + 1))
    ordered: list[Path] = []
    for place, path in enumerate(others, 1):
        ordered.append(path)
        if place % distance == 0 and waiting:
            ordered.append(waiting.pop(0))
    return [item for path in (*ordered, *waiting) for item in modules[path]]
