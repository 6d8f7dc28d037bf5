"""Drawing each page in-process, with its first and its warm times.

All of the whole fleet is drawn by Streamlit without a browser; what it keeps between reruns is
forgotten before each. Findings and flags are evaluated beside pages: they have a row of their own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tests.benchmarks.table import Row, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.benchmarks.bench_fleet import Fleet

PAGE_S, BUDGETS_S = 1.0, {"run": 2.0}
FIRST_S, FILTER_S = 4.0, 0.5


def measure(fleet: Fleet, warm: int, filters: int, run: Callable[..., Any]) -> Iterator[Row]:
    """Return a row a page, then the first page ever and changes of the filter."""
    found = run(_pages, fleet.database, warm, filters)
    for page, (cost, slowest) in found["pages"].items():
        budget = BUDGETS_S.get(page, PAGE_S)
        yield Row(
            f"page {page}, {fleet.name}, warm median",
            f"{number(cost.wall_s)} s, most of it {slowest}",
            cost,
            f"< {budget:.0f} s",
            cost.wall_s < budget if fleet.is_of_budget else None,
        )
    cost = found["findings"]
    yield Row(
        "findings of the time range after a commit, beside the pages",
        f"{number(cost.wall_s)} s",
        cost,
    )
    for name, key, budget in (
        ("page overview, first after opening the file", "first", FIRST_S),
        (f"page overview, filter change, p95 of {found['filters']}", "p95", FILTER_S),
    ):
        cost = found[key]
        yield Row(
            name,
            f"{number(cost.wall_s)} s",
            cost,
            f"< {budget:g} s",
            cost.wall_s < budget if fleet.is_of_budget else None,
        )


def _pages(database: Path, warm: int, filters: int) -> dict[str, Any]:
    """Draw the pages where Streamlit is not to be heard: it misses its runtime."""
    logging.disable(logging.WARNING)
    from tests.benchmarks import page_draws  # noqa: PLC0415 -- imports Streamlit

    return page_draws.pages(database, warm, filters)
