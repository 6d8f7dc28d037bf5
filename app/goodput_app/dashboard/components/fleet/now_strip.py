"""The Overview's strip of what is wrong at the end of the time range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.text import units

if TYPE_CHECKING:
    from datetime import datetime

    from goodput_app.dashboard.scope import View

GROUPS = {  # label -> rules of reference.finding_rules
    "Nodes down or drained": ("node_down", "node_drained"),
    "GPUs with errors": ("gpu_error", "faulty_gpu", "silent_gpu"),
    "Hung runs": ("hang", "no_step"),
    "Throttled GPUs": ("throttled_gpu",),
    "Runs with idle GPUs": ("idle_allocation", "gaps_between_steps"),
    "Late ranks, slow links": ("slow_rank", "slow_link", "link_down"),
}


def draw(findings: pl.DataFrame | None, losing: pl.DataFrame, view: View) -> None:
    """Draw the strip.

    findings: rows of marts.findings, None while they are evaluated; losing: rows of
    marts.losing_now
    """
    is_now = pl.col("is_open") & pl.col("state").is_in(finding_parts.OPEN_STATES)
    found = None if findings is None else findings.filter(is_now)
    with st.container(key="tiles_now"):
        columns = st.columns(len(GROUPS) + 1, gap="small")
    for column, (label, rules) in zip(columns, GROUPS.items(), strict=False):
        with column.container(border=True, height="stretch", gap="xsmall"):
            if found is None:
                st.markdown(f":gray[{label}]")
                st.caption("being evaluated")
                continue
            of_it = found.filter(pl.col("rule").is_in(rules))
            since = of_it["since_at"].min()
            _count(label, of_it.height, rules)
            st.caption(_since(since, view))  # type: ignore[arg-type] # a column of moments
    with columns[-1].container(border=True, height="stretch", gap="xsmall"):
        cost = float(losing["cost_per_h"].sum()) if losing["cost_per_h"].count() else None
        lost = theme.markdown_text(units.cost(cost))
        st.markdown(f"**{lost}** an hour lost")
        st.caption(f"{losing['gpus'].sum():,.0f} GPUs that do nothing useful")


def _count(label: str, count: int, rules: tuple[str, ...]) -> None:
    if not count:
        st.markdown(f":gray[0 {label}]")
        return
    st.page_link(
        finding_parts.PAGE,
        label=f"**{count:,}** {label}",
        query_params=scope_bar.carried() | {"state": "open", "rules": ",".join(rules)},
    )


def _since(since: datetime | None, view: View) -> str:
    if since is None:
        return "none"
    return f"since {time_zone.moment(since)}" if since > view.start else "all of the time shown"
