"""What is wrong with a node: its worst finding as a card, and the way to its other incidents."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action as Allowed
from goodput_app.dashboard import flags, severities, theme, time_zone
from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.figures.bars import text_of
from goodput_app.dashboard.scope import View
from goodput_app.text import units

AROUND = timedelta(hours=1)  # of an incident, on either side
ELSEWHERE_SHOWN = 3


def draw(findings: pl.DataFrame | None, node: str) -> None:
    """Draw the worst finding of a node in the time range, the open ones first.

    findings: marts.findings of all nodes, None while they are evaluated
    """
    if findings is None:
        st.caption("Findings of this time range are being evaluated.")
        return
    of_node = flags.by_node(findings).filter(pl.col("node") == node)
    if of_node.is_empty():
        st.caption("No finding names this node in this time range.")
        return
    ranks = pl.col("severity").replace_strict({one: n for n, one in enumerate(severities.LOOKS)})
    row = of_node.sort(~pl.col("is_open"), ranks, maintain_order=True).row(0, named=True)
    with st.container(border=True, gap="xsmall"):
        left, right = st.columns([5, 1.1], vertical_alignment="top")
        with left:
            _verdict(row)
            _elsewhere(findings, row)
        with right.container(gap="small"):
            may = current_identity().may(Allowed.SET_FINDING_STATE)
            if may and row["is_open"] and row["state"] == "open":
                with st.popover("Acknowledge", type="primary", width="stretch"):
                    finding_parts.say(row)
            params = {"node": None, "finding": row["finding_key"]}
            places.to_page(finding_parts.PAGE, "Open finding", "flag", **params)


def _verdict(row: Mapping[str, Any]) -> None:
    st.html(
        f"{severities.badge_html(row['severity'])}<b>{text_of(row['title'])}</b>, "
        f"{text_of(_span(row['since_at'], row['until_at']))}"
    )
    amounts = [
        text
        for text in (
            None if not row["gpu_ms"] else units.gpu_time(row["gpu_ms"]),
            None if not row["cost"] else units.cost(row["cost"]),
            f"owner {row['owner']}",
        )
        if text
    ]
    st.markdown(
        f"**{row['confidence']}**: {theme.markdown_text(row['evidence'], 400)}  \n"
        f"**What to do:** {theme.markdown_text(row['what_to_do'], 400)}"
    )
    st.caption(theme.markdown_text(" · ".join(amounts)))


def _span(since: datetime, until: datetime | None) -> str:
    if until is None:
        return f"since {time_zone.moment(since)}"
    is_moment = until - since < timedelta(seconds=1)
    return time_zone.moment(since) if is_moment else time_zone.window(since, until)


def _elsewhere(findings: pl.DataFrame, row: Mapping[str, Any]) -> None:
    """Draw links to other nodes with the same finding in the time range."""
    others = (
        findings.filter(
            (pl.col("rule") == row["rule"])
            & pl.col("node").is_not_null()
            & ((pl.col("node") != row["node"]) | (pl.col("cluster") != row["cluster"]))
        )
        .unique(["cluster", "node"], maintain_order=True)
        .select("cluster", "node")
    )
    if others.is_empty():
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption("The same in this time range:", width="content")
        for cluster, node in others.head(ELSEWHERE_SHOWN).iter_rows():
            page, params = name_links.node(node, cluster)
            st.page_link(page, label=theme.markdown_text(node), query_params=params)
        if others.height > ELSEWHERE_SHOWN:
            st.caption(f"and {units.count(others.height - ELSEWHERE_SHOWN, 'more node')}")


def incidents(outages: pl.DataFrame, view: View) -> None:
    """Draw the buttons that move the time range to the incident before or after.

    outages: marts.node_outages of the node, of all times
    """
    ranges = incident_ranges(outages, view.as_of)
    before, after = beside(ranges, (view.start, view.end))
    for label, times in (("Previous incident", before), ("Next incident", after)):
        changes = (
            {}
            if times is None
            else {"from": time_zone.iso(times[0]), "to": time_zone.iso(times[1])}
        )
        st.button(label, disabled=times is None, on_click=scope_bar.go, args=(changes,))


Range = tuple[datetime, datetime]


def incident_ranges(outages: pl.DataFrame, end: datetime) -> list[Range]:
    """Return the time range that shows each outage, in order; end: of what is known."""
    starts = outages.sort("start_at").select("start_at", "end_at").iter_rows()
    return [(start - AROUND, min((stop or end) + AROUND, end)) for start, stop in starts]


def beside(ranges: list[Range], shown: Range) -> tuple[Range | None, Range | None]:
    """Return the incident before and the one after a time range.

    Of a range that is no incident's own, the one before is the last that begins in or before it.
    """
    if shown in ranges:
        place = ranges.index(shown)
        before, after = ranges[:place], ranges[place + 1 :]
    else:
        before = [one for one in ranges if one[0] + AROUND < shown[1]]
        after = [one for one in ranges if one[0] + AROUND >= shown[1]]
    return (before[-1] if before else None), (after[0] if after else None)
