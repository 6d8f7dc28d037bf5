"""Reads of the ledger in groups, and of what was lost by team."""

import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.data.marts import clusters, ledger_by_category, read, reader
from goodput_app.weekly import ledger_groups, like_for_like
from goodput_queries.scope import Scope

of_categories = ledger_groups.of_categories


def groups() -> pl.DataFrame:
    """Return the group of each category: category, ledger_group, label, colour."""
    return read("select * from reference.ledger_groups")


def grouped(ledger: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return `weekly.ledger_groups.grouped` in the order of stacks."""
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    return ledger_groups.grouped(ledger, known).sort(rank)


def compared(scope: Scope) -> like_for_like.Compared | None:
    """Return the groups of a window and of the one before, like for like; None without one."""
    known = groups()
    return like_for_like.compared(
        scope, clusters(), ledger_by_category, lambda ledger: grouped(ledger, known)
    )


def over_time(frame: pl.DataFrame, of: dict[str, str]) -> pl.DataFrame:
    """Return marts.ledger_over_time by group."""
    return (
        frame.with_columns(pl.col("category").replace(of))
        .group_by("bucket_at", "category", maintain_order=True)
        .agg(pl.col("gpu_ms").sum())
    )


waste = reader("waste_by_team", "gpu_ms desc, team, ledger_group, blame")
executing_idle = reader("executing_idle_by_team", "idle_ms desc, team")
