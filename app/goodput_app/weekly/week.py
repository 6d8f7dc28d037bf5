"""What a week came to: figures of views, and the change from the week before, like for like."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodput_app.text.headline import Headline, headline
from goodput_app.weekly import ledger_groups, like_for_like
from goodput_queries.scope import Scope

Read = Callable[[str, Scope], pl.DataFrame]  # rows of a query, decimals as floats
LEDGER = "select * from marts.ledger_by_category order by code"
WASTE = "select * from marts.waste_by_team order by gpu_ms desc, team, ledger_group, blame"


@dataclass(frozen=True)
class Week:
    """Figures of a week.

    summary: a row of marts.goodput_summary; waste: marts.waste_by_team; by_teams: `moved_by_team`,
    no rows where nothing is compared
    """

    summary: Mapping[str, Any]
    first: Headline
    compared: like_for_like.Compared | None
    waste: pl.DataFrame
    by_teams: pl.DataFrame

    @property
    def is_priced(self) -> bool:
        """Say whether changes are of money, else of GPU time."""
        if self.compared is None:
            return self.summary["wasted_cost"] is not None
        return self.compared.wasted == "wasted_cost"


def week(
    scope: Scope,
    clusters: pl.DataFrame,
    read: Read,
    grouped: Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame] = ledger_groups.grouped,
    baseline: like_for_like.Baseline = like_for_like.AUTOMATIC,
) -> Week:
    """Return the figures of a scope. clusters: marts.clusters; grouped: sums a ledger up."""
    of_clusters = Scope(from_ms=scope.from_ms, to_ms=scope.to_ms, cluster=scope.cluster)
    ladder = read("select * from marts.evidence_ladder", of_clusters).row(0, named=True)
    summary = read("select * from marts.goodput_summary", scope).row(0, named=True)
    known = read("select * from reference.ledger_groups", Scope())
    compared = like_for_like.compared(
        scope, clusters, lambda of: read(LEDGER, of), lambda ledger: grouped(ledger, known),
        baseline,
    )  # fmt: skip
    waste = read(WASTE, scope)
    now, then = waste.clear(), waste.clear()
    if compared is not None:
        now, then = (
            pl.concat([read(WASTE, pair[side]) for pair in compared.windows.pairs])
            for side in (0, 1)
        )
    is_priced = compared is None or compared.wasted == "wasted_cost"
    by_teams = moved_by_team(now, then, is_priced=is_priced)
    return Week(summary, headline(summary, ladder, scope), compared, waste, by_teams)


def moved_by_team(now: pl.DataFrame, then: pl.DataFrame, *, is_priced: bool) -> pl.DataFrame:
    """Return team, label of a group, change of its waste and is_more, the largest change first.

    now, then: marts.waste_by_team of both windows, to whose difference the changes add up
    """
    column = pl.col("cost" if is_priced else "gpu_ms").fill_null(0)
    sides = [
        side.select("team", "label", change=column * sign) for side, sign in ((now, 1), (then, -1))
    ]
    return (
        pl.concat(sides)
        .group_by("team", "label")
        .agg(pl.col("change").sum())
        .filter(pl.col("change") != 0)
        .with_columns(is_more=pl.col("change") > 0)
        .sort(-pl.col("change").abs(), "team", "label", nulls_last=True)
    )
