"""The fleet in a sentence, three numbers and what is wrong with it, at the end of the range."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.components.fleet import what_happened
from goodput_app.dashboard.components.overview import status
from goodput_app.dashboard.data import failures, health, metrics
from goodput_app.dashboard.severities import badge_html
from goodput_app.text import headline, units
from goodput_app.text.sentences import sentence as sentence_of
from goodput_queries.scope import Scope

FREE = ("idle_with_demand", "idle_no_demand")
AWAY = ("down", "drained", "maintenance", "powered_off")
WRONG_SHOWN = 6


def sentence(states: pl.DataFrame, queue: pl.DataFrame) -> str:
    """Return how many nodes are out of service, what is free, and who waits for GPUs.

    states: marts.gpu_states; queue: marts.queue_waits by team
    """
    nodes = states.group_by("node_key").agg(
        pl.col("category").first(),
        pl.col("gpu_model").first(),
        gpus=pl.len(),
        is_away=pl.col("category").is_in(AWAY).all(),
        is_free=pl.col("category").is_in(FREE).all(),
    )
    of_away = nodes.filter("is_away").group_by("category").len().sort("category")
    said = [
        f"{units.count(number, 'node')} {category.replace('_', ' ')}"
        for category, number in of_away.iter_rows()
    ]
    if "down" not in of_away["category"].to_list():
        said.append("no node down")
    free = (
        states.filter(pl.col("category").is_in(FREE))
        .group_by("gpu_model")
        .agg(gpus=pl.len())
        .join(nodes.filter("is_free").group_by("gpu_model")
              .agg(of_whole=pl.col("gpus").sum(), nodes=pl.len()),
              on="gpu_model", how="left", nulls_equal=True)
        .sort("gpus", descending=True)
    )  # fmt: skip
    for model, gpus, of_whole, whole in free.iter_rows():
        in_nodes = ""
        if whole:
            those = "" if gpus == of_whole else f", {of_whole:,} of them"
            in_nodes = f"{those} in {units.count(whole, 'whole node')}"
        said.append(f"{gpus:,} {model or 'GPUs'} free{in_nodes}")
    if free.is_empty():
        said.append("no GPU free")
    jobs, gpus = int(queue["waiting"].sum()), int(queue["waiting_gpus"].sum())
    if jobs:
        waits = "waits" if jobs == 1 else "wait"
        said.append(f"{units.count(jobs, 'job')} {waits} for {units.count(gpus, 'GPU')}")
    return ", ".join(said)


def three(
    summary: Mapping[str, Any], first: headline.Headline, losing: pl.DataFrame, states: pl.DataFrame
) -> list[tuple[str, str, str]]:
    """Return goodput, what an hour loses and GPUs that are not available: value, name, of what.

    summary: a row of marts.goodput_summary; losing: marts.losing_now; states: marts.gpu_states
    """
    of = f"of {units.gpu_time(summary['capacity_ms'])} capacity"
    per_h = float(losing["cost_per_h"].sum()) if losing["cost_per_h"].count() else None
    gpus = f"{losing['gpus'].sum():,.0f} of {units.count(states.height, 'GPU')}"
    counts = dict(states.group_by("category").len().iter_rows())
    parts = [f"{counts[one]:,} {one.replace('_', ' ')}" for one in AWAY if one in counts]
    away = sum(counts.get(one, 0) for one in AWAY)
    return [
        (first.text, first.label, "; ".join(filter(None, (of, first.bound)))),
        (units.cost(per_h), "Lost per hour", f"{gpus} do nothing useful"),
        (units.count(away, "GPU"), "Not available", ", ".join(parts) or "none is out"),
    ]


def wrong(findings: pl.DataFrame | None) -> None:
    """Draw the open pages and tickets, the worst first, each with the way to it.

    findings: marts.findings, None while they are evaluated
    """
    if findings is None:
        st.caption("Findings are being evaluated.")
        return
    now = status.open_now(findings)
    if now.is_empty():
        st.caption("No page and no ticket is open.")
        return
    for row in now.head(WRONG_SHOWN).iter_rows(named=True):
        mark, said = st.columns([0.8, 9], gap="small", vertical_alignment="center")
        mark.html(badge_html(row["severity"]))
        with said.container(gap=None):
            label = theme.markdown_text(sentence_of(row["title"], row["subject"] or ""), 90)
            places.to_page(finding_parts.PAGE, label, node=None, finding=row["finding_key"])
            facts = [
                row["evidence"],
                f"since {time_zone.moment(row['since_at'])}",
                units.cost(row["cost"]) if row["cost"] else None,
                row["owner"],
            ]
            st.caption(theme.markdown_text(" · ".join(filter(None, facts)), 300))
    if now.height > WRONG_SHOWN:
        label = f"All {now.height:,} open pages and tickets"
        places.to_page(finding_parts.PAGE, label, node=None, state="open")


def marks(findings: pl.DataFrame | None) -> pl.DataFrame:
    """Return the worst open page or ticket of each node: `node_key`, `severity`, `title`."""
    schema = {"node_key": pl.String, "severity": pl.String, "title": pl.String}
    if findings is None:
        return pl.DataFrame(schema=schema)
    key = pl.concat_str("cluster", "node", separator="/").alias("node_key")
    now = status.open_now(findings).filter(pl.col("node").is_not_null())
    return now.unique(["cluster", "node"], keep="first", maintain_order=True).select(
        key, "severity", "title"
    )


def happened(
    scope: Scope, found: pl.DataFrame | None, shown: pl.DataFrame | None
) -> tuple[pl.DataFrame, bool]:
    """Return `what_happened.of_fleet`, and whether a source has more than is read of it.

    found: marts.findings, None while they are evaluated; shown: rows of marts.gpu_states, of whose
    nodes alone the list is
    """
    of = {
        "outages": (health.outages_seen(scope), health.ROWS_SHOWN),
        "events": (metrics.errors(scope), metrics.ERRORS_MAX),
        "tests": (health.node_tests(scope), health.ROWS_SHOWN),
        "failures": (failures.ended_badly(scope), failures.ENDED_MAX),
    }
    is_part = any(rows.height >= most for rows, most in of.values())
    every = {name: rows for name, (rows, _) in of.items()}
    rows = what_happened.of_fleet(what_happened.merged(**every, findings=found))
    if shown is not None:
        rows = rows.join(shown.select("cluster", "node"), on=["cluster", "node"], how="semi")
    return rows, is_part
