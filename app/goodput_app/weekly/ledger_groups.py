"""The ledger in nine groups: a first look has nine parts, not thirty.

And what was lost by team.
"""

import polars as pl

USEFUL = "useful"


def of_categories(ledger: pl.DataFrame, known: pl.DataFrame) -> dict[str, str]:
    """Return the group of each category of a ledger; what counts as goodput is useful.

    ledger: marts.ledger_by_category; known: `groups()`.
    """
    found = dict(known.select("category", "ledger_group").rows())
    counted = ledger.filter(pl.col("kind") == "goodput")["category"].to_list()
    return found | dict.fromkeys(counted, USEFUL)


def grouped(ledger: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the ledger with its categories summed up to groups.

    A group stands in the column `category`, its parts in `definition`, the largest of them in
    `largest`, what is lost of it in `wasted_cost`; the sum is that of the ledger.
    ledger: marts.ledger_by_category, or `like_for_like.summed`.
    """
    of = of_categories(ledger, known)
    looks = known.unique("ledger_group").select(
        "ledger_group", pl.col("label").alias("group_label"), pl.col("colour").alias("group_colour")
    )
    rows = ledger.with_columns(
        pl.col("category").replace_strict(of, default=None).alias("ledger_group")
    ).join(looks, on="ledger_group", how="left")
    used, lost = pl.col("gpu_ms") > 0, pl.col("kind") == "badput"
    return (
        rows.group_by("ledger_group", maintain_order=True)
        .agg(
            pl.col("group_label").first().alias("label"),
            pl.col("group_colour").first().alias("colour"),
            pl.col("group", "kind").first(),
            pl.col("label").filter(used).str.join(", ").alias("definition"),
            pl.col("category").sort_by("gpu_ms").last().alias("largest"),
            pl.col("gpu_ms").sum(),
            _sum(pl.col("cost")).alias("cost"),
            _sum(pl.col("cost").filter(lost)).alias("wasted_cost"),
            pl.col("gpu_ms").filter(lost).sum().alias("wasted_ms"),
        )
        .rename({"ledger_group": "category"})
    )


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


def _sum(column: pl.Expr) -> pl.Expr:
    """Return the sum of what is known; null where nothing is."""
    return pl.when(column.count() > 0).then(column.sum())
