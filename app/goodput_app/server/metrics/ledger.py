"""The ledger for `/metrics`: counters of settled hours, and ratios, time and cost of 24 hours."""

from collections import defaultdict
from typing import Any

import polars as pl

from goodput_app.server.metrics.families import Samples
from goodput_app.settings import settings
from goodput_queries import counted_hours
from goodput_queries.counted_hours import OTHER
from goodput_queries.database import Store
from goodput_queries.scope import Scope

TIMEOUT_S = 10.0  # Prometheus' default scrape timeout
WINDOW_MS = 24 * 3_600_000
CLUSTERS_SHOWN = 20  # those with most GPUs
RATIOS = {
    "goodput_ratio": "goodput_ratio",
    "goodput_high_ratio": "goodput_hi_ratio",
    "goodput_availability_ratio": "availability_ratio",
    "goodput_allocation_ratio": "allocation_ratio",
    "goodput_scheduling_ratio": "scheduling_ratio",
    "goodput_runtime_ratio": "runtime_lo_ratio",
    "goodput_runtime_high_ratio": "runtime_hi_ratio",
    "goodput_program_ratio": "program_ratio",
    "goodput_coverage_ratio": "coverage_ratio",
}

_CLUSTERS = f"""
    select cluster, epoch_ms(as_of_at) as as_of_ms from marts.clusters
    order by gpus desc, cluster limit {CLUSTERS_SHOWN}
"""
_CATEGORIES = """
    select category, "group", kind_of(category, kind) as kind, label
    from reference.gpu_second_categories order by precedence
"""
_GPUS = """
    select units.cluster, coalesce(units.gpu_model, '') as model, count(distinct gpu_uuid) as gpus
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
    where units.end_ms is null or units.end_ms >= clusters.as_of_ms
    group by all
"""
# categories without time included: their time is known to be zero
_PARTS = """
    with sums as (
        select category, blame, team, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
        from marts.ledger_blamed_by_node group by all
    )
    select categories.category, categories."group", sums.team,
        coalesce(sums.blame, blame_of(categories.category, categories.blame, null, null)) as blame,
        coalesce(sums.gpu_ms, 0) / 1000 as gpu_s, sums.cost,
        case when is_useful(categories.category) then gpu_s else 0 end as useful_s,
        case when is_unsettled(categories.category) then gpu_s else 0 end as unsettled_s
    from reference.gpu_second_categories as categories
    left join sums using (category)
"""


def clusters(store: Store) -> dict[str, int]:
    """Return the end of evidence of each cluster that has GPUs, epoch milliseconds."""
    return dict(store.read(_CLUSTERS, timeout_s=TIMEOUT_S).rows())


def add_window(store: Store, samples: Samples, ends: dict[str, int]) -> None:
    """Add ratios, time and cost of the last 24 hours of each cluster."""
    rows: dict[str, list[tuple[dict[str, Any], float | None]]] = defaultdict(list)
    for cluster, end_ms in ends.items():
        scope = Scope(cluster=cluster, from_ms=end_ms - WINDOW_MS, to_ms=end_ms)

        def read(sql: str, scope: Scope = scope) -> pl.DataFrame:
            return store.read(sql, scope=scope, timeout_s=TIMEOUT_S)

        of: dict[str, Any] = {"cluster": cluster}
        summary = read("select * from marts.goodput_summary").row(0, named=True)
        for name, column in RATIOS.items():
            rows[name].append((of, summary[column]))
        rows["goodput_capacity_gpu_seconds"].append((of, summary["capacity_ms"] / 1000))
        rows["goodput_ledger_timestamp_seconds"].append((of, end_ms / 1000))
        first = read("select rung, ratio from marts.evidence_ladder").row(0, named=True)
        rows["goodput_headline_ratio"].append((of | {"rung": first["rung"]}, first["ratio"]))
        _add_parts(rows, of, read(_PARTS))
    for name, of_name in rows.items():
        samples.add(name, of_name)
    version = store.read("select definition_version() as version").item()
    samples.add("goodput_definition_version", [({}, version)] if ends else [])
    categories = store.read(_CATEGORIES).to_dicts()
    samples.add("goodput_category_info", [(row, 1) for row in categories] if ends else [])
    gpus = store.read(_GPUS, timeout_s=TIMEOUT_S).filter(pl.col("cluster").is_in(list(ends)))
    folded = _folded(gpus.rename({"gpus": "weight"}), "model").group_by("cluster", "model").sum()
    samples.add(
        "goodput_gpus",
        [({"cluster": c, "model": m}, n) for c, m, n in folded.sort("cluster", "model").rows()],
    )


def _add_parts(
    rows: dict[str, list[tuple[dict[str, Any], float | None]]],
    of: dict[str, Any],
    parts: pl.DataFrame,
) -> None:
    """Add time and cost of a cluster by category, and by team."""
    money: dict[str, Any] = {"currency": settings().statement.currency}
    cost = pl.when(pl.col("cost").is_not_null().any()).then(pl.col("cost").sum()).alias("cost")
    keys = ["category", "group", "blame"]
    for row in parts.group_by(keys, maintain_order=True).agg(pl.sum("gpu_s"), cost).to_dicts():
        labels = of | {key: row[key] for key in keys}
        rows["goodput_window_gpu_seconds"].append((labels, row["gpu_s"]))
        rows["goodput_window_cost"].append((labels | money, row["cost"]))
    held = parts.filter((pl.col("group") == "held") & pl.col("team").is_not_null())
    teams = _folded(held.with_columns(weight="gpu_s", cluster=pl.lit("")), "team")
    sums = teams.group_by("team").agg(pl.sum("gpu_s", "useful_s", "unsettled_s"), cost)
    for row in sums.sort("team").to_dicts():
        labels, base = of | {"team": row["team"]}, row["gpu_s"]
        high = row["useful_s"] + row["unsettled_s"]
        rows["goodput_team_allocated_gpu_seconds"].append((labels, base))
        rows["goodput_team_ratio"].append((labels, row["useful_s"] / base if base else None))
        rows["goodput_team_high_ratio"].append((labels, high / base if base else None))
        rows["goodput_team_cost"].append((labels | money, row["cost"]))


def _folded(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return rows with the label's values of least weight replaced by OTHER, cluster by cluster."""
    most = settings().metrics.label_values
    sums = frame.group_by("cluster", label).agg(pl.sum("weight"))
    shown = (
        sums.sort(["weight", label], descending=[True, False])
        .group_by("cluster", maintain_order=True)
        .head(most)
        .select("cluster", label, is_shown=pl.lit(value=True))
    )
    value = pl.when("is_shown").then(label).otherwise(pl.lit(OTHER)).alias(label)
    return frame.join(shown, on=["cluster", label], how="left").with_columns(value).drop("is_shown")


def add_counted(store: Store, samples: Samples, ends: dict[str, int]) -> None:
    """Add the counters of settled hours, and what was corrected or folded since."""
    most = settings().metrics.label_values

    def shown(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return frame.filter(pl.col("cluster").is_in(list(ends))).to_dicts()

    for row_name, column in (("from", "from_ms"), ("until", "until_ms")):
        found = shown(store.read("from state.counted_until order by cluster"))
        samples.add(
            f"goodput_counted_{row_name}_timestamp_seconds",
            [({"cluster": row["cluster"]}, row[column] / 1000) for row in found],
        )
    counted = counted_hours.counted(store, most).rename({"gpu_model": "model"})
    folded = counted_hours.folded(store, most).with_columns(
        pl.col("label").replace("gpu_model", "model")
    )
    for name, frame, column, divisor in (
        ("goodput_gpu_seconds_total", counted, "gpu_ms", 1000),
        ("goodput_revised_gpu_seconds", counted_hours.revisions(store), "gpu_ms", 1000),
        ("goodput_folded_label_values", folded, "folded", 1),
    ):
        samples.add(name, [(row, row.pop(column) / divisor) for row in shown(frame)])
