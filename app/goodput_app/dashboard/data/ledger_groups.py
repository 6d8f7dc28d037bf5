"""The ledger in nine groups, of which one can be open: a first look has nine bars, not thirty.

And what was lost by group and team, in one window and against another.
"""

import polars as pl

from goodput_app.dashboard.data.marts import in_order, read
from goodput_billing.statement.amounts.rounding import apportion, nearest
from goodput_queries.scope import Scope

USEFUL = "useful"
EXACT = 10**9  # of a unit of the currency: what is summed up before it is rounded
OTHERS, TOTAL = "All others", "Total"


def groups() -> pl.DataFrame:
    """Return the group of each category: category, ledger_group, label, colour."""
    return read("select * from reference.ledger_groups")


def of_categories(ledger: pl.DataFrame, known: pl.DataFrame) -> dict[str, str]:
    """Return the group of each category of a ledger; what counts as goodput is useful.

    ledger: marts.ledger_by_category; known: `groups()`.
    """
    found = dict(known.select("category", "ledger_group").rows())
    counted = ledger.filter(pl.col("kind") == "goodput")["category"].to_list()
    return found | dict.fromkeys(counted, USEFUL)


def grouped(ledger: pl.DataFrame, known: pl.DataFrame, opened: str | None) -> pl.DataFrame:
    """Return the ledger with its categories summed up to groups, but for those of the open one.

    A group stands in the column `category`, its parts in `definition`; the sum is that of the
    ledger. ledger: marts.ledger_by_category.
    """
    of = of_categories(ledger, known)
    looks = known.unique("ledger_group").select(
        "ledger_group", pl.col("label").alias("group_label"), pl.col("colour").alias("group_colour")
    )
    rows = ledger.with_columns(
        pl.col("category").replace_strict(of, default=None).alias("ledger_group")
    ).join(looks, on="ledger_group", how="left")
    is_open = pl.col("ledger_group").eq_missing(pl.lit(opened or "none"))
    used = pl.col("gpu_ms") > 0
    summed = (
        rows.filter(~is_open)
        .group_by("ledger_group", maintain_order=True)
        .agg(
            pl.col("group_label").first().alias("label"),
            pl.col("group_colour").first().alias("colour"),
            pl.col("group", "kind").first(),
            pl.col("label").filter(used).str.join(", ").alias("definition"),
            pl.col("gpu_ms").sum(),
            pl.when(pl.col("cost").count() > 0).then(pl.col("cost").sum()).alias("cost"),
        )
        .rename({"ledger_group": "category"})
    )
    columns = summed.columns
    return pl.concat([rows.filter(is_open).select(columns), summed], how="vertical_relaxed")


def over_time(frame: pl.DataFrame, of: dict[str, str], opened: str | None) -> pl.DataFrame:
    """Return marts.ledger_over_time by group, but for the categories of the open one."""
    named = {category: category if group == opened else group for category, group in of.items()}
    return (
        frame.with_columns(pl.col("category").replace(named))
        .group_by("bucket_at", "category", maintain_order=True)
        .agg(pl.col("gpu_ms").sum())
    )


def waste(scope: Scope) -> pl.DataFrame:
    """Return what was lost by team, group of categories and cause."""
    return in_order("marts.waste_by_team", scope, "gpu_ms desc, team, ledger_group, blame")


def executing_idle(scope: Scope) -> pl.DataFrame:
    """Return how long loaded programs of each team did nothing."""
    return in_order("marts.executing_idle_by_team", scope, "idle_ms desc, team")


def by_team(waste: pl.DataFrame, idle: pl.DataFrame) -> pl.DataFrame:
    """Return what each team lost and by whom it was caused, the most costly first.

    waste: marts.waste_by_team, to which the rows add up
    idle: marts.executing_idle_by_team; null for a team without readings of memory
    """

    def part(name: str, column: str, *blames: str) -> pl.Expr:
        of = pl.col(column).filter(pl.col("blame").is_in(blames)).sum()
        # nothing lost costs nothing; without any price it is not known
        return pl.when(pl.col(column).count() > 0).then(of).alias(name)

    found = waste.group_by("team").agg(
        pl.col("gpu_ms").sum().alias("wasted_ms"),
        part("own_waste_ms", "gpu_ms", "own"),
        part("platform_waste_ms", "gpu_ms", "platform"),
        part("unallocated_ms", "gpu_ms", "unallocated", "reservation"),
        _sum(pl.col("cost")).alias("wasted_cost"),
        part("own_waste_cost", "cost", "own"),
        part("platform_waste_cost", "cost", "platform"),
    )
    of_team = idle.select("team", pl.col("idle_ms").alias("executing_idle_ms"))
    return found.join(of_team, on="team", how="left").sort(
        "wasted_cost", "wasted_ms", "team", descending=[True, True, False], nulls_last=True
    )


def moved(now: pl.DataFrame, then: pl.DataFrame, decimals: int, most: int) -> pl.DataFrame:
    """Return by how much each group and team lost more or less than before, the largest first.

    now, then: marts.waste_by_team of two windows
    decimals: of the currency. What follows the `most` largest is one row; the last one is the
    total, to which the others add up, to the millisecond and in whole units of the currency.
    """
    keys = ["label", "team"]
    sides = [_by(keys, frame, sign) for frame, sign in ((now, 1), (then, -1))]
    rows = pl.concat(sides).group_by(keys).agg(pl.col("change_ms").sum(), _sum(pl.col("change")))
    rows = rows.filter((pl.col("change_ms") != 0) | (pl.col("change") != 0))
    rows = rows.sort(
        pl.col("change").abs(), pl.col("change_ms").abs(), *keys,
        descending=[True, True, False, False], nulls_last=True,
    )  # fmt: skip
    if rows.is_empty():
        return rows.with_columns(pl.lit(None, pl.Float64).alias("change_cost")).drop("change")
    if rows.height > most:
        rest = rows[most:].select(
            pl.lit(OTHERS).alias("label"), pl.lit(None, pl.String).alias("team"),
            pl.col("change_ms").sum(), _sum(pl.col("change")),
        )  # fmt: skip
        rows = pl.concat([rows[:most], rest])
    unit = EXACT // 10**decimals
    amounts = rows["change"].fill_null(0).to_list()
    total = nearest(sum(amounts), unit)
    is_priced = rows["change"].count() > 0
    shown = [amount / 10**decimals for amount in apportion(amounts, total, unit)]
    last = pl.DataFrame(
        {
            "label": [TOTAL], "team": [None], "change_ms": [rows["change_ms"].sum()],
            "change_cost": [total / 10**decimals if is_priced else None],
        },
        schema={**rows.drop("change").schema, "change_cost": pl.Float64},
    )  # fmt: skip
    costs = pl.Series("change_cost", shown if is_priced else [None] * len(shown), dtype=pl.Float64)
    return pl.concat([rows.drop("change").with_columns(costs), last])


def _by(keys: list[str], frame: pl.DataFrame, sign: int) -> pl.DataFrame:
    """Return the sums of a window by these keys; money in whole parts of EXACT."""
    exact = (pl.col("cost") * EXACT).round().cast(pl.Int64) * sign
    return frame.select(*keys, (pl.col("gpu_ms") * sign).alias("change_ms"), exact.alias("change"))


def _sum(column: pl.Expr) -> pl.Expr:
    """Return the sum of what is known; null where nothing is."""
    return pl.when(column.count() > 0).then(column.sum())
