"""The ledger by any key: the one place where the command line, reports and pages group GPU time."""

from collections.abc import Sequence

import polars as pl

from goodput_queries.errors import QueryError
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.database_file import Reader

# what a person may group by -> the column or expression of marts.ledger_scoped
KEYS = {
    "category": "category",
    "phase": "phase",
    "blame": "blame",
    "cluster": "cluster",
    "node": "node",
    "gpu": "gpu_uuid",
    "model": "gpu_model",
    "team": "team",
    "account": "team",
    "user": "user_name",
    "run": "run_key",
    "attempt": "attempt_key",
    "job": "job_run_key",
    "partition": "partition",
    "qos": "qos",
    "hour": "from_ms(hour_ms)",
    "day": "date_trunc('day', from_ms(hour_ms))",
}


def ledger(
    store: Reader,
    *,
    by: Sequence[str] = ("category",),
    scope: Scope = EVERYTHING,
    limit: int | None = None,
) -> pl.DataFrame:
    """Return GPU time by the given keys, largest first.

    Columns: the keys, gpu_ms (integer), gpu_s (exact to the millisecond), share_ratio (of the
    scope's capacity), cost (null where nothing is priced). The rows add up to `capacity_ms`,
    unless a limit cuts them. An unknown key raises QueryError.
    """
    for key in by:
        if key not in KEYS:
            raise QueryError(f"the ledger has no key {key!r}; known: {', '.join(KEYS)}.")
    columns = ", ".join(f"{KEYS[key]} as {key}" for key in by)
    order, at_most = ", ".join(by), "" if limit is None else f" limit {limit:d}"
    view = "ledger_blamed" if "blame" in by else "ledger_scoped"
    view += "" if "gpu" in by else "_by_node"
    return store.read(
        f"""with grouped as (
            select {columns}, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
            from marts.{view}
            group by all
            having sum(gpu_ms) <> 0
        )
        select
            * exclude (gpu_ms, cost),
            gpu_ms,
            gpu_ms / 1000.0 as gpu_s,
            gpu_ms / nullif(sum(gpu_ms) over (), 0) as share_ratio,
            cost
        from grouped
        order by gpu_ms desc, {order}{at_most}""",
        scope=scope,
    )


def unplaced_ms(store: Reader, scope: Scope = EVERYTHING) -> int:
    """Return the allocated GPU-milliseconds of the scope that are not placed on a GPU.

    They are outside the ledger and its capacity (`marts.unplaced`).
    """
    frame = store.read(
        "select coalesce(sum(gpu_ms), 0)::bigint as gpu_ms from marts.unplaced", scope=scope
    )
    return int(frame.item())


def capacity_ms(store: Reader, scope: Scope = EVERYTHING) -> int:
    """Return the GPU-milliseconds in the inventory within the scope (`marts.capacity`).

    Filters that only held time has (team, user, run, partition) cannot be answered from the
    inventory and raise QueryError.
    """
    if any((scope.team, scope.user, scope.run, scope.partition)):
        raise QueryError("capacity is of GPUs: it has no team, user, run or partition.")
    frame = store.read(
        "select coalesce(sum(capacity_ms), 0)::bigint as capacity_ms from marts.capacity",
        scope=scope,
    )
    return int(frame.item())
