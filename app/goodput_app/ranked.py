"""Rows of marts in the order in which they are read: what is open, severe and costly first.

Commands, pages and the tools of programs list findings, fixes, runs and views by these alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from goodput_queries.catalog.models import Model
from goodput_queries.errors import QueryError
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.database_file import Reader

COSTS: Final = ("cost", "lost_cost", "gpu_ms", "lost_gpu_ms", "booked_gpu_ms")
FINDINGS: Final = (
    "state in ('closed', 'dismissed'), severity_rank(severity), cost desc nulls last, "
    "gpu_ms desc nulls last, since_at, finding_key"
)
FIXES: Final = (
    "back_cost desc nulls last, back_ms desc, back_high_ms desc, gpu_ms desc nulls last, fix, "
    "target"
)
OBJECTIVES: Final = "is_burning desc, budget_spent_ratio desc nulls last, name"
LOSSES: Final = """select losses.* from marts.loss_causes as losses
    inner join reference.gpu_second_categories as categories using (category)
    where categories.kind in ('badput', 'unavailable')
    order by cost desc nulls last, gpu_ms desc, cluster, run_key, category, losses.blame"""
# what many runs of a team lost in one way is one loss; `node` says how many they were
LOSSES_OF_TEAMS: Final = f"""select cluster, team, category, blame, any_value(label) as label,
        case when count(run_key) = 1 then any_value(run_key) end as run_key,
        case when count(run_key) = 1 then any_value(run_id) end as run_id,
        case when count(run_key) > 1 then format('{{:,}} runs', count(run_key))
            else any_value(node) end as node,
        sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost, max_by(fix, gpu_ms) as fix
    from ({LOSSES}) group by cluster, team, category, blame
    order by cost desc nulls last, gpu_ms desc, cluster, team, category, blame"""
RUNS: Final = "wasted_cost desc nulls last, wasted_ms desc, run_key"


def findings(store: Reader, scope: Scope = EVERYTHING, states: Sequence[str] = ()) -> pl.DataFrame:
    """Return rows of marts.findings in these states, or in all."""
    return store.read(
        "select * from marts.findings "
        f"where len($1::varchar[]) = 0 or list_contains($1::varchar[], state) order by {FINDINGS}",
        [list(states)],
        scope=scope,
    )


def fixes(store: Reader, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return rows of marts.fixes."""
    return store.read(f"select * from marts.fixes order by {FIXES}", scope=scope)


def runs(store: Reader, scope: Scope = EVERYTHING, limit: int | None = None) -> pl.DataFrame:
    """Return rows of marts.runs, those that wasted most first."""
    at_most = "" if limit is None else f" limit {limit:d}"
    return store.read(f"select * from marts.runs order by {RUNS}{at_most}", scope=scope)


def rows_of(
    store: Reader,
    model: Model,
    scope: Scope = EVERYTHING,
    limit: int | None = None,
    where: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Return the rows of a view, highest cost first where it has costs, then by its grain.

    where: values that columns have. Raises QueryError for a column that the view has not.
    """
    name = model.qualified_name
    columns = store.read(f"select * from {name} limit 0", scope=scope, is_kept=True).columns
    for column in where or ():
        if column not in columns:
            raise QueryError(f"{name} has no column {column[:80]!r}; it has {', '.join(columns)}.")
    tests = " and ".join(f'"{column}" = ${n}' for n, column in enumerate(where or (), 1))
    ranked = [f"{cost} desc nulls last" for cost in COSTS if cost in columns]
    ranked += [f'"{key}"' for key in model.grain if key in columns]
    parts = [
        f"select * from {name}",
        f"where {tests}" if tests else "",
        f"order by {', '.join(ranked)}" if ranked else "",
        f"limit {limit:d}" if limit else "",
    ]
    values = list(where.values()) if where else None
    return store.read(" ".join(filter(None, parts)), values, scope=scope, is_kept=True)
