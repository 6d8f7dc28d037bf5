"""Reads of the ledger in groups, of what was lost by team, and of how much that changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.data.marts import clusters, ledger_by_category, read, reader
from goodput_app.weekly import ledger_groups, like_for_like
from goodput_app.weekly.like_for_like import Baseline
from goodput_queries.scope import Scope

of_categories = ledger_groups.of_categories
OF_CATEGORY = ("category",)
_OF_CATEGORIES = """select
    category,
    case when kind = 'badput' then gpu_ms else 0 end as wasted_ms,
    case when kind = 'badput' then cost end as wasted_cost,
    wasted_ms as wasted_most_ms,
    wasted_cost as wasted_most_cost,
    (sum(gpu_ms) over ())::bigint as gpu_ms,
    (sum(case when is_unsettled(category) then 0 else gpu_ms end) over ())::bigint as covered_ms
from marts.ledger_by_category"""
_OF_OWNERS = """with parts as (
    select *, kind = 'badput' as is_lost, is_unsettled(category) as is_open
    from marts.ledger_scoped_by_node
    inner join reference.gpu_second_categories using (category)
)
select
    {by},
    coalesce(sum(gpu_ms) filter (where is_lost), 0)::bigint as wasted_ms,
    coalesce(sum(gpu_ms) filter (where is_lost or is_open), 0)::bigint as wasted_most_ms,
    sum(cost) filter (where is_lost) as wasted_cost,
    sum(cost) filter (where is_lost or is_open) as wasted_most_cost,
    sum(gpu_ms)::bigint as gpu_ms,
    coalesce(sum(gpu_ms) filter (where not is_open), 0)::bigint as covered_ms
from parts
group by all"""


def groups() -> pl.DataFrame:
    """Return the group of each category: category, ledger_group, label, colour."""
    return read("select * from reference.ledger_groups")


def grouped(ledger: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return `weekly.ledger_groups.grouped` in the order of stacks."""
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    return ledger_groups.grouped(ledger, known).sort(rank)


def compared(scope: Scope, baseline: Baseline) -> like_for_like.Compared | None:
    """Return the groups of a window and of an earlier one, like for like; None without one."""
    known = groups()
    return like_for_like.compared(
        scope, clusters(), ledger_by_category, lambda ledger: grouped(ledger, known), baseline
    )


@dataclass(frozen=True)
class Changed:
    """What changed against an earlier window. rows: `like_for_like.beside`; amount: its column."""

    windows: like_for_like.Windows
    rows: pl.DataFrame
    amount: str


def wasted_changed(scope: Scope, baseline: Baseline, by: Sequence[str]) -> Changed | None:
    """Return how much more or less was wasted, in money where both windows have prices.

    by: team; cluster and node; or category
    """
    sql = _OF_CATEGORIES if by == OF_CATEGORY else _OF_OWNERS.format(by=", ".join(by))
    return changed(scope, baseline, lambda of: read(sql, of), by)


def changed(
    scope: Scope,
    baseline: Baseline,
    parts_of: Callable[[Scope], pl.DataFrame],
    by: Sequence[str],
    amount: str = "",
) -> Changed | None:
    """Return the change of an amount of each part; None where no earlier window has any.

    parts_of: rows of a scope with `by`, gpu_ms and covered_ms; amount: '' what was wasted
    """
    for found in like_for_like.windows(scope, clusters(), baseline):
        now, then = (pl.concat([parts_of(pair[side]) for pair in found.pairs]) for side in (0, 1))
        if not then["gpu_ms"].sum():
            continue
        if amount:
            return Changed(found, like_for_like.beside(now, then, by, amount), amount)
        amount = like_for_like.wasted_column(now, then)
        most = amount.replace("wasted", "wasted_most")
        return Changed(found, like_for_like.beside(now, then, by, amount, most), amount)
    return None


def over_time(frame: pl.DataFrame, of: dict[str, str]) -> pl.DataFrame:
    """Return marts.ledger_over_time by group."""
    return (
        frame.with_columns(pl.col("category").replace(of))
        .group_by("bucket_at", "category", maintain_order=True)
        .agg(pl.col("gpu_ms").sum())
    )


waste = reader("waste_by_team", "gpu_ms desc, team, ledger_group, blame")
executing_idle = reader("executing_idle_by_team", "idle_ms desc, team")
