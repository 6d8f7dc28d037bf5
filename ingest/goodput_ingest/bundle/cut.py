"""Which rows a bundle takes along: those that its numbers are computed from.

Job runs come whole where they touch the time range, with what their jobs reported over their whole
life: whether a step counts is decided by what came after it. Readings come with an hour on either
side. A bundle of nodes has what is known of these nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.database import Store
from goodput_queries.errors import QueryError

LEFT_OUT = frozenset({"rejects", "catalog"})
READINGS = frozenset(
    {
        *("gpu_samples", "gpu_samples_other", "gpu_processes", "node_samples", "link_samples"),
        *("serving_samples", "serving_histograms"),
    }
)
OF_JOBS = frozenset({"job_steps", "job_requests", "holds"})
WITHOUT_PODS = frozenset({"queue_entries"})  # of jobs that may have no job run yet
OF_ACCOUNTS = frozenset(
    {"budgets", "queue_quotas"}
)  # of others, too: nothing that is known of nodes
MARGIN = timedelta(hours=1)
EVER = datetime(1970, 1, 1), datetime(9999, 1, 1)  # noqa: DTZ001 -- naive UTC, as in the tables
SHORT = "lower(split_part(split_part({}, '#', 1), '.', 1))"  # a node, of a host or a slot of it


@dataclass(frozen=True)
class Cut:
    """What a bundle is of: a time range (naive UTC, end exclusive), and nodes by their short names.

    nodes: None: all. run_ids: the ids by which the jobs call themselves, where it is of one run.
    """

    start: datetime
    end: datetime
    nodes: tuple[str, ...] | None = None
    run_ids: tuple[str, ...] = ()


def cut_of_run(store: Store, run: str) -> Cut:
    """Return the cut of a run's life on its nodes; `run` is its key. Raises QueryError."""
    found = store.read(
        """select min(coalesce(first_eligible_at, first_start_at)) as first_at,
            max(last_end_at) as last_at, list(distinct run_id) as run_ids
        from marts.runs where run_key = $1""",
        [run],
    ).row(0, named=True)
    if found["first_at"] is None:
        raise QueryError(f"there is no run {run!r}; `goodput runs` lists them.")
    nodes = store.read(
        f"""select distinct {SHORT.format("node")} as node
        from marts.run_gpus where run_key = $1""",
        [run],
    )["node"]
    last = found["last_at"] or EVER[1]
    return Cut(found["first_at"], last, tuple(sorted(nodes)), tuple(found["run_ids"]))


def tables(store: Store, cut: Cut) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield table and rows of a cut, in the order of the catalogue, where there are rows."""
    jobs = _job_runs(store, cut)
    first = min([cut.start, *jobs["submit_at"].drop_nulls()])
    last = max([cut.end, *jobs["end_at"].drop_nulls()])
    for model in models.of_layer("raw").values():
        if model.name in LEFT_OUT or (model.name in OF_ACCOUNTS and cut.nodes is not None):
            continue
        rows = jobs if model.name == "job_runs" else _rows(store, cut, model, first, last)
        if model.name in (OF_JOBS if cut.nodes is None else OF_JOBS | WITHOUT_PODS):
            rows = rows.join(
                jobs.select("cluster", "job_id_raw").unique(),
                on=("cluster", "job_id_raw"),
                how="semi",
            )
        if not rows.is_empty():
            yield model.name, rows


def _job_runs(store: Store, cut: Cut) -> pl.DataFrame:
    on_nodes = (
        ""
        if cut.nodes is None
        else f"""and len(list_filter(nodes,
        lambda node: list_contains($nodes, {SHORT.format("node")}))) > 0"""
    )
    return store.read(
        f"""select * exclude (load_sequence) from raw.job_runs
        where submit_at < $end and coalesce(end_at, timestamp 'infinity') > $start {on_nodes}
        order by all""",
        _parameters(cut, {"start": cut.start, "end": cut.end}, is_of_nodes=bool(on_nodes)),
    )


def _rows(store: Store, cut: Cut, model: Model, first: datetime, last: datetime) -> pl.DataFrame:
    columns = store.read(f"describe {model.qualified_name}")["column_name"].to_list()
    conditions, moments = [], {}
    if model.observed:
        start, end = (cut.start, cut.end) if model.name in READINGS else (first, last)
        moments = {
            "start": max(start, EVER[0] + MARGIN) - MARGIN,
            "end": min(end, EVER[1] - MARGIN) + MARGIN,
        }
        begins = f"least({', '.join(model.observed)})"
        ends = f"greatest({', '.join(model.observed)})"
        if "end_at" in model.observed:
            ends = "coalesce(end_at, timestamp 'infinity')"
        conditions.append(f"coalesce({begins} < $end and {ends} >= $start, true)")
    place = None if cut.nodes is None else _place(columns, cut)
    if place is not None:
        conditions.append(place)
    where = " and ".join(conditions) or "true"
    return store.read(
        f"select * exclude (load_sequence) from {model.qualified_name} where {where} order by all",
        _parameters(cut, moments, is_of_nodes=place is not None),
    )


def _place(columns: list[str], cut: Cut) -> str | None:
    """Return the condition of being on the nodes of a cut; None for what has no place."""
    if "host" in columns:
        runs = ", ".join(f"'{run.replace(chr(39), chr(39) * 2)}'" for run in cut.run_ids) or "''"
        return f"""(list_contains($nodes, {SHORT.format("host")})
            or (host is null and run_id in ({runs})))"""
    if "node" in columns:
        return f"(node is null or node = '*' or list_contains($nodes, {SHORT.format('node')}))"
    if "nodes" in columns:
        return f"""(nodes is null or len(list_filter(nodes,
            lambda node: list_contains($nodes, {SHORT.format("node")}))) > 0)"""
    if "gpu_uuid" in columns:
        return f"""gpu_uuid in (
            select gpu_uuid from raw.gpus where list_contains($nodes, {SHORT.format("node")}))"""
    return None


def _parameters(cut: Cut, moments: dict[str, datetime], *, is_of_nodes: bool) -> dict[str, object]:
    return {**moments, **({"nodes": list(cut.nodes or ())} if is_of_nodes else {})}
