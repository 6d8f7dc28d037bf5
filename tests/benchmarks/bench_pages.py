"""Drawing each page in-process, with its first and its warm times.

All of the whole fleet is drawn by Streamlit without a browser; what it keeps between reruns is
forgotten before each. Findings and flags are evaluated beside pages: they have a row of their own.
"""

import logging

from tests.benchmarks.table import Row, number

PAGE_S, FILTER_S, FIRST_S = 1.0, 0.5, 4.0
PAYLOAD_BYTES = 1_000_000
BUDGET = f"< {PAGE_S:g} s, filter < {FILTER_S:g} s, first < {FIRST_S:g} s of CPU, < 1 MB"


def measure(fleet, warm, filters, run):
    """Return a row a page, judged by CPU time, then the first page ever and the findings."""
    found = run(drawn, fleet.database, warm, filters)
    for page, draws in found["pages"].items():
        yield Row(
            f"page {page}, {fleet.name}, warm median",
            f"first after a commit {number(draws.first.cpu_s)} s, answers kept "
            f"{number(draws.kept.cpu_s)} s, filter changed "
            f"{number(draws.filtered.cpu_s) + ' s' if draws.filtered else '-'} of CPU, "
            f"{draws.payload_bytes / 1000:,.0f} kB; most of it {draws.slowest}",
            draws.warm,
            BUDGET,
            is_within(draws) if fleet.is_of_budget else None,
        )
    cost = found["findings"]
    yield Row(
        "findings of the time range after a commit, beside the pages",
        f"{number(cost.wall_s)} s",
        cost,
    )
    cost = found["first"]
    yield Row(
        "page overview, first after opening the file",
        f"{number(cost.wall_s)} s",
        cost,
        f"< {FIRST_S:g} s of CPU",
        cost.cpu_s < FIRST_S if fleet.is_of_budget else None,
    )


def is_within(draws):
    """Say whether a page keeps all of its budgets."""
    return (
        draws.warm.cpu_s < PAGE_S
        and draws.first.cpu_s < FIRST_S
        and (draws.filtered is None or draws.filtered.cpu_s < FILTER_S)
        and draws.payload_bytes < PAYLOAD_BYTES
    )


def drawn(database, warm, filters):
    """Draw the pages where Streamlit is not to be heard: it misses its runtime."""
    logging.disable(logging.WARNING)
    from tests.benchmarks import page_draws  # noqa: PLC0415 -- imports Streamlit

    return page_draws.pages(database, warm, filters)
