"""Drawing pages in-process: what `bench_pages` measures, in a process with Streamlit."""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from concurrent.futures import wait
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.app.conftest import URL_PATHS, opened
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import number

from goodput_app.dashboard import flags
from goodput_app.dashboard.data import findings
from goodput_queries.scope import Scope
from goodput_queries.storage.store import LocalStore

MART = re.compile(r"\bmarts\.(\w+)")
OVERVIEW, RUN = "fleet_overview", "one_run"
PATIENCE_S = 300


class Timed(LocalStore):
    """A store that notes how long each read took, by the first mart that it names."""

    def __init__(self, path: Path) -> None:
        """Open the database."""
        super().__init__(path)
        self.seconds: dict[str, float] = {}

    def read(self, sql: str, *arguments: Any, **more: Any) -> pl.DataFrame:
        """Read, and note the time."""
        started = time.perf_counter()
        try:
            return super().read(sql, *arguments, **more)
        finally:
            named = MART.search(sql)
            name = named[1] if named else "state"
            taken = time.perf_counter() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + taken


def pages(database: Path, warm: int, filters: int) -> dict[str, Any]:
    """Draw all pages; return costs and the slowest read of each.

    warm: how often each is drawn for its median. filters: how many changes of the filter.
    """
    flags.IS_EVALUATED = False  # beside the pages; they are the findings of the Overview
    findings.WAIT_S = 0  # evaluated beside the pages too, and measured apart
    with contextlib.closing(Timed(database)) as store:
        window, subjects = _window(store), _subjects(store)
        first = _cost(store, OVERVIEW, window)
        of_findings = _evaluated(store, window)
        found = {
            URL_PATHS.get(page, "overview"): _warm(
                store, page, {**window, **subjects.get(page, {})}, warm
            )
            for page in (OVERVIEW, *URL_PATHS)
        }
        changes = [
            _cost(store, OVERVIEW, {**window, **change}) for change in _filters(store, filters)
        ]
    changes.sort(key=lambda cost: cost.wall_s)
    return {
        "pages": found,
        "first": first,
        "findings": of_findings,
        "filters": len(changes),
        "p95": changes[min(len(changes) - 1, int(len(changes) * 0.95))],
    }


def _window(store: LocalStore) -> dict[str, str]:
    """Return the time range of all there is, as in a link."""
    first, last = store.read("select min(first_at), max(as_of_at) from marts.clusters").row(0)
    return {"from": f"{first:%Y-%m-%dT%H:%M:%SZ}", "to": f"{last:%Y-%m-%dT%H:%M:%SZ}"}


def _subjects(store: LocalStore) -> dict[str, dict[str, str]]:
    """Return what pages of one thing show: the largest run that reports steps, a node, a GPU."""
    run = store.read(
        "select run_key from marts.runs where restarts is not null "
        "order by gpus desc nulls last, run_key limit 1"
    ).item()
    node, gpu = store.read(
        "select node, gpu_uuid from intermediate.int_gpu_units order by all limit 1"
    ).row(0)
    return {RUN: {"run": run}, "nodes_and_one": {"node": node}, "one_gpu": {"gpu": gpu}}


def _evaluated(store: LocalStore, window: dict[str, str]) -> Cost:
    """Evaluate the findings of the time range after a commit: nothing that they read is kept."""
    first, last = (datetime.fromisoformat(window[end]) for end in ("from", "to"))
    scope = Scope(from_ms=int(first.timestamp() * 1000), to_ms=int(last.timestamp() * 1000))
    with store.writing() as cursor:
        cursor.execute("select 1")
    st.cache_data.clear()
    with Meter() as meter:
        findings.evaluation(scope).result()
    return meter.cost


def _filters(store: LocalStore, most: int) -> list[dict[str, str]]:
    """Return one team or node after the other, of many some from all over."""
    values = store.read(
        "select kind, value from marts.scope_values where kind in ('team', 'node') order by all"
    ).rows()
    chosen = [{kind: value} for kind, value in values]
    return chosen[:: max(1, len(chosen) // most)][:most]


def _cost(store: Timed, page: str, link: dict[str, str]) -> Cost:
    """Draw once, as a session does whose answers are not kept; evaluated views are."""
    st.cache_data.clear()
    store.seconds.clear()
    with Meter() as meter:
        app: AppTest = opened(store, page, patience_s=PATIENCE_S, **link)
    wait(findings.forget())
    if app.exception:
        raise RuntimeError(f"{page} cannot be drawn: {app.exception[0].value}")
    return meter.cost


def _warm(store: Timed, page: str, link: dict[str, str], times: int) -> tuple[Cost, str]:
    """Draw some times; return the median of the page and its slowest read with its time."""
    costs = [_cost(store, page, link) for _ in range(times)]
    slowest = max(store.seconds, key=lambda name: store.seconds[name])
    median = Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
    )
    return median, f"{slowest} {number(store.seconds[slowest])} s"
