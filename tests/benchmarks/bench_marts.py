"""What each page asks of the database, with its first and its warm times.

Called are the functions of `goodput_app.dashboard.data.marts` that a page names, for all of the
whole fleet; what Streamlit keeps between reruns is forgotten before each. Drawing is not in it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tests.benchmarks.table import Row, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.benchmarks.bench_fleet import Fleet

BUDGETS_S = {"Overview": 1.0, "Run": 2.0}
FIRST_S, FILTER_S = 4.0, 0.5


def measure(fleet: Fleet, warm: int, filters: int, run: Callable[..., Any]) -> Iterator[Row]:
    """Return a row a page, then the first page ever and changes of the filter."""
    found = run(_pages, fleet.database, warm, filters)
    for page, (cost, slowest) in found["pages"].items():
        budget = BUDGETS_S.get(page)
        about = f" of {found['ranks']:,} GPUs" if page == "Run" else ""
        limit = " (of 1,024 ranks)" if page == "Run" else ""
        yield Row(
            f"marts of {page}{about}, {fleet.name}, warm median",
            f"{number(cost.wall_s)} s, most of it {slowest}",
            cost,
            "-" if budget is None else f"< {budget:.0f} s{limit}",
            None if budget is None or not fleet.is_of_budget else cost.wall_s < budget,
        )
    for name, key, budget in (
        ("marts of Overview, first after opening the file", "first", FIRST_S),
        (f"marts of Overview, filter change, p95 of {found['filters']}", "p95", FILTER_S),
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
    """Ask for the pages where Streamlit is not to be heard: it misses its runtime."""
    logging.disable(logging.WARNING)
    from tests.benchmarks import page_reads  # noqa: PLC0415 -- imports Streamlit

    return page_reads.pages(database, warm, filters)
