"""Asking the database for pages: what `bench_marts` measures, in a process with Streamlit."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import number

import goodput_app.dashboard.pages
from goodput_app.dashboard.components.scope_bar import bucket_ms, epoch_ms
from goodput_app.dashboard.data import marts
from goodput_app.dashboard.state import use_store
from goodput_queries.scope import Scope
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

Ask = tuple[str, Scope | None]  # a function of goodput_app.dashboard.data.marts and its scope
EVERY_PAGE = ("clusters", "scope_values")
SCOPE = {"scope"}
READ = re.compile(r"\bmarts\.(\w+)\(")


def names_of_pages() -> dict[str, list[str]]:
    """Return what each page reads, by the page's title: `marts.<name>(...)` in its file.

    What wants more than the scope to be asked (a day, a GPU) is left out.
    """
    found = {}
    for file in sorted(Path(goodput_app.dashboard.pages.__path__[0]).glob("[!_]*.py")):
        text = file.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(text)) or file.stem).partition(":")[0]
        names = dict.fromkeys(READ.findall(text))
        found[title] = [n for n in names if len(_required(n)) <= 1 and set(_required(n)) <= SCOPE]
    return found


def pages(database: Path, warm: int, filters: int) -> dict[str, Any]:
    """Ask for all pages; return costs and the slowest read of each.

    warm: how often each is asked for its median. filters: how many changes of the filter.
    """
    with contextlib.closing(LocalStore(database)) as store:
        use_store(store)
        try:
            window, named = _window(), names_of_pages()
            first = _cost(_asks(named["Overview"], window))
            run, ranks = _largest_run(window)
            found = {
                page: _warm(_asks(names, replace(window, run=run if page == "Run" else None)), warm)
                for page, names in named.items()
            }
            scopes = _filtered(window, filters)
            changes = [_cost(_asks(named["Overview"], scope)) for scope in scopes]
        finally:
            use_store(None)
    changes.sort(key=lambda cost: cost.wall_s)
    return {
        "pages": found,
        "first": first,
        "ranks": ranks,
        "filters": len(changes),
        "p95": changes[min(len(changes) - 1, int(len(changes) * 0.95))],
    }


def _window() -> Scope:
    """Return the scope of all there is."""
    clusters = marts.clusters()
    from_ms, to_ms = epoch_ms(clusters["first_at"].min()), epoch_ms(clusters["as_of_at"].max())
    return Scope(from_ms=from_ms, to_ms=to_ms, bucket_ms=bucket_ms(to_ms - from_ms))


def _largest_run(window: Scope) -> tuple[str, int]:
    """Return the run on most GPUs that reports steps, and the number of steps."""
    runs = marts.runs(window).filter(pl.col("restarts").is_not_null())
    largest = runs.sort("gpus", descending=True, nulls_last=True).row(0, named=True)
    return largest["run_key"], largest["gpus"]


def _filtered(window: Scope, most: int) -> list[Scope]:
    """Return the window for one team or node after the other, of many some from all over."""
    values = marts.scope_values(window).filter(pl.col("kind").is_in(["team", "node"]))
    chosen = [
        replace(window, **{kind: value})
        for kind, value in values.select("kind", "value").iter_rows()
    ]
    return chosen[:: max(1, len(chosen) // most)][:most]


def _required(name: str) -> list[str]:
    """Return the required arguments of a function of `goodput_app.dashboard.data.marts`."""
    parameters = inspect.signature(getattr(marts, name)).parameters.values()
    return [p.name for p in parameters if p.default is p.empty]


def _asks(names: Sequence[str], scope: Scope) -> list[Ask]:
    """Return the reads of a page with those of the bar above it."""
    return [(name, scope if _required(name) else None) for name in (*EVERY_PAGE, *names)]


def _cost(asks: Sequence[Ask]) -> Cost:
    """Ask once, as a page does whose answers are not kept."""
    st.cache_data.clear()
    with Meter() as meter:
        for name, scope in asks:
            _call(name, scope)
    return meter.cost


def _warm(asks: Sequence[Ask], times: int) -> tuple[Cost, str]:
    """Ask some times; return the median of the page and its slowest read with its time."""
    if times > 1:  # once is a trial, which no cold read can spoil
        _cost(asks)
    costs = [_cost(asks) for _ in range(times)]
    seconds = {}
    for name, scope in asks:
        st.cache_data.clear()
        started = time.perf_counter()
        _call(name, scope)
        seconds[name] = time.perf_counter() - started
    slowest = max(seconds, key=lambda name: seconds[name])
    median = Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
    )
    return median, f"{slowest} {number(seconds[slowest])} s"


def _call(name: str, scope: Scope | None) -> None:
    function = getattr(marts, name)
    function() if scope is None else function(scope)
