"""Drawing each page in-process, with its first and its warm times.

All of the whole fleet is drawn by Streamlit without a browser; what it keeps between reruns is
forgotten before each. Findings and flags are evaluated beside pages: they have a row of their own.
"""

import contextlib
import logging
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from unittest.mock import patch

import streamlit as st
from streamlit.testing.v1.local_script_runner import LocalScriptRunner
from tests.app.conftest import URL_PATHS, opened
from tests.benchmarks.meter import Cost, Meter, median
from tests.benchmarks.table import Row, number

from goodput_app.dashboard import flags
from goodput_app.dashboard.data import findings
from goodput_queries.database import LocalStore
from goodput_queries.scope import Scope

OVERVIEW, RUN = "fleet_overview", "one_run"
PATIENCE_S = 300
FIRST_S, WARM_S, FILTER_S, FINDINGS_S, PAYLOAD_BYTES = 2.0, 0.7, 0.4, 4.0, 700_000
BUDGET = f"first {FIRST_S:g}, warm {WARM_S:g}, filter {FILTER_S:g} s of CPU, < 700 kB"


@dataclass(frozen=True)
class Draws:
    """What a page took: drawn first after a commit, again, and with a filter that it had not.

    warm: its answers are not kept. filtered: those without the filter are, as for whoever looks at
    the page and chooses one.
    """

    first: Cost
    warm: Cost
    filtered: Cost | None  # None: a page of one thing, which no filter changes
    payload_bytes: int  # of the messages to the browser

    def is_within(self):
        """Say whether the page keeps all of its budgets."""
        return (
            self.first.cpu_s <= FIRST_S
            and self.warm.cpu_s <= WARM_S
            and (self.filtered is None or self.filtered.cpu_s <= FILTER_S)
            and self.payload_bytes < PAYLOAD_BYTES
        )


def measure(fleet, warm, filters, run):
    """Return a row a page, judged by CPU time, then that of the findings."""
    found = run(pages, fleet.database, warm, filters)
    for page, draws in found["pages"].items():
        changed = f"{number(draws.filtered.cpu_s)} s" if draws.filtered else "-"
        yield Row(
            f"page {page}, {fleet.name}, warm median",
            f"first after a commit {number(draws.first.cpu_s)} s, filter changed {changed} of CPU, "
            f"{draws.payload_bytes / 1000:,.0f} kB",
            draws.warm, BUDGET, draws.is_within() if fleet.is_of_budget else None,
        )  # fmt: skip
    cost = found["findings"]
    yield Row(
        "findings of the time range after a commit, beside the pages", f"{number(cost.wall_s)} s",
        cost, f"<= {FINDINGS_S:g} s of CPU",
        cost.cpu_s <= FINDINGS_S if fleet.is_of_budget else None,
    )  # fmt: skip


def pages(database, warm, filters):
    """Draw all pages; return the draws of each, and the cost of the findings.

    warm: how often each is drawn for its median. filters: how many changes of the filter.
    """
    logging.disable(logging.WARNING)  # Streamlit misses its runtime
    flags.IS_EVALUATED = False  # beside the pages; they are the findings of the Overview
    findings.WAIT_S = 0  # evaluated beside the pages too, and measured apart
    with contextlib.closing(LocalStore(database)) as store:
        window, subjects = _window(store), _subjects(store)
        _cost(store, OVERVIEW, window)  # the first after opening
        of_findings = _evaluated(store, window)
        changes = _filters(store, filters)
        found = {}
        for page in (OVERVIEW, *URL_PATHS):
            of_it = subjects.get(page)
            link = {**window, **(of_it or {})}
            links = [] if of_it else [{**window, **change} for change in changes]
            found[URL_PATHS.get(page, "overview")] = _draws(store, page, link, links, warm)
    return {"pages": found, "findings": of_findings}


def _window(store):
    """Return the time range of all there is, as in a link."""
    first, last = store.read("select min(first_at), max(as_of_at) from marts.clusters").row(0)
    return {"from": f"{first:%Y-%m-%dT%H:%M:%SZ}", "to": f"{last:%Y-%m-%dT%H:%M:%SZ}"}


def _subjects(store):
    """Return what pages of one thing show: the largest run that reports steps, a node, a GPU."""
    run = store.read(
        "select run_key from marts.runs where restarts is not null "
        "order by gpus desc nulls last, run_key limit 1"
    ).item()
    node, gpu = store.read(
        "select node, gpu_uuid from intermediate.int_gpu_units order by all limit 1"
    ).row(0)
    return {RUN: {"run": run}, "nodes_and_one": {"node": node}, "one_gpu": {"gpu": gpu}}


def _evaluated(store, window):
    """Evaluate the findings of the time range after a commit: nothing that they read is kept."""
    first, last = (datetime.fromisoformat(window[end]) for end in ("from", "to"))
    scope = Scope(from_ms=int(first.timestamp() * 1000), to_ms=int(last.timestamp() * 1000))
    _commit(store)
    st.cache_data.clear()
    with Meter() as meter:
        findings.evaluation(scope).result()
    return meter.cost


def _commit(store):
    """Commit nothing, after which no evaluated view is kept."""
    with store.writing() as cursor:
        cursor.execute("select 1")


def _filters(store, most):
    """Return so many nodes and teams in turns."""
    values = store.read(
        """select kind, value from marts.scope_values where kind in ('team', 'node')
        order by row_number() over (partition by kind order by value), kind limit $1""",
        [most],
    )
    return [{kind: value} for kind, value in values.rows()]


def _cost(store, page, link, *, is_kept=False):
    """Draw once, as a session does whose answers are not kept; evaluated views are.

    is_kept: answers are, too. Returns the cost and the bytes of the messages to the browser.
    """
    if not is_kept:
        st.cache_data.clear()
    # no findings are evaluated meanwhile: their threads would count as the page's
    with (
        patch.object(findings, "evaluation", lambda _: Future()),
        _messages() as messages,
        Meter() as meter,
    ):
        app = opened(store, page, patience_s=PATIENCE_S, **link)
    if app.exception:
        raise RuntimeError(f"{page} cannot be drawn: {app.exception[0].value}")
    return meter.cost, sum(message.ByteSize() for message in messages)


@contextlib.contextmanager
def _messages():
    """Give a list that gets the messages of the page that is drawn inside the block."""
    found = []
    of_a_run = LocalScriptRunner.forward_msgs

    def noted(runner):
        found[:] = of_a_run(runner)
        return found

    with patch.object(LocalScriptRunner, "forward_msgs", noted):
        yield found


def _draws(store, page, link, filtered, times):
    """Draw it after a commit, some times again, and with each of the filters."""
    _commit(store)
    first, payload_bytes = _cost(store, page, link)
    warm = median([_cost(store, page, link)[0] for _ in range(times)])
    _cost(store, page, link, is_kept=True)
    changes = [_cost(store, page, other, is_kept=True)[0] for other in filtered]
    return Draws(first, warm, median(changes) if changes else None, payload_bytes)
