"""Data: whether to trust it."""

from typing import Any

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places, scope_bar, states, tables
from goodput_app.dashboard.components.data import (
    audit_log,
    delivered_statements,
    notification_panel,
    replay_panel,
)
from goodput_app.dashboard.components.rows import downloads
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import lake, marts
from goodput_app.dashboard.figures import waste
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import headline, units
from goodput_queries.scope import EVERYTHING

SOURCES = headers("data_health.sources")
LIVE = headers("data_health.live")
LIVE_EVERY_S = 5
STALE = ("failing", "stale")
NOTHING_FOUND = "No contradiction and no missing evidence was found."
SAID_MAX = 5  # the worst; the table has them all


def _why(source: dict[str, Any]) -> str:
    """Return the line of a list with what ails a live source; '' where it is well."""
    if source["state"] not in STALE:
        return ""
    name = theme.markdown_text(f"{source['source']} ({source['origin']})")
    said = source["error"] or _of_one_not_asked(source)
    return f"\n- {name}: {theme.markdown_text(said)}"


def _of_one_not_asked(source: dict[str, Any]) -> str:
    return (
        "it is no longer polled. Is a server or goodput collect running? If it was removed from "
        f"goodput.toml: goodput retire {source['source']}"
    )


def _advice(finding: dict[str, Any]) -> str:
    """Return the line of a list with a finding and what to do: cells of a table would cut it."""
    names = ("kind", "what", "example", "what_to_do")
    plain = (str(finding[name] or "").replace("`", '"') for name in names)
    kind, what, example, advice = (theme.markdown_text(text, 1_000) for text in plain)
    time = f"{units.gpu_time(finding['gpu_ms'])}, " if finding["gpu_ms"] else ""
    amounts = f"{units.count(finding['n'], 'case')}, {time}such as {example}"
    return f"- **{kind}** ({amounts}): {what}. {advice and f'**What to do:** {advice}.'}"


@st.fragment(run_every=LIVE_EVERY_S)
def live_sources() -> None:
    """Draw the polled sources; refreshed at an interval."""
    with panel("Live sources", "marts.live_sources", help="Sources that Goodput polls."):
        asked = marts.live_sources()
        if asked.is_empty():
            st.caption(
                "No source is polled. `goodput doctor` shows which ones can be, and the lines of "
                "goodput.toml that add them."
            )
            return
        if (said := marts.write_error()) is not None:
            st.error(
                "What sources bring is not stored, and is read again once there is space: "
                f"{theme.markdown_text(said)}",
                icon=":material/hard_disk:",
            )
        if (troubled := asked["state"].is_in(STALE).sum()) > 0:
            st.error(
                f"{troubled} of {asked.height} live sources are failing or stale."
                + "".join(_why(row) for row in asked.head(SAID_MAX).iter_rows(named=True)),
                icon=":material/sync_problem:",
            )
        elif (late := (asked["state"] == "late").sum()) > 0:
            st.warning(
                f"{late} of {asked.height} live sources are late.", icon=":material/schedule:"
            )
        for sentence in asked.filter(~asked["state"].is_in(STALE))["error"].drop_nulls():
            st.warning(theme.markdown_text(sentence), icon=":material/skip_next:")
        tables.show(asked, LIVE, "live")


if not marts.has_rows():
    if not marts.live_sources().is_empty():
        live_sources()  # why nothing comes
    st.stop()
view = scope_bar.view()
scope = EVERYTHING if view is None else view.scope
st.title("Data", anchor=False)
st.caption("Can I trust it?")
is_building = view is None and states.ledger_is_being_built()
is_polled = not marts.live_sources().is_empty()
if is_polled:
    live_sources()
with panel("Sources", "marts.sources", help="What each source brought, and how fresh it is."):
    tables.show(marts.sources(), SOURCES, "sources")
    if (url := lake.url()) is not None:
        st.caption(
            f"Loaded from the lake {theme.markdown_text(url)}; builds bring what is new there."
        )
with panel("Missing evidence", "marts.sources", help="What no source has brought so far."):
    states.missing_sources(marts.sources()["tables"].explode().to_list())
if not is_building:
    with panel(
        "Coverage by hour", "marts.coverage_by_hour", help="Grey: nothing was expected or known."
    ):
        covered = marts.coverage_by_hour(scope)
        if covered.is_empty():
            st.info("No hour of this window has evidence.", icon=":material/hourglass_empty:")
        else:
            charts.draw(waste.coverage(covered), covered, "coverage", "Coverage by source and hour")
        for row in marts.reading_precision(scope).iter_rows(named=True):
            st.caption(f"{theme.markdown_text(row['cluster'])}: {headline.precision(row)}")
    with panel(
        "Findings",
        "marts.data_quality",
        help="What the evidence contradicts or lacks. Time of the ledger is that of "
        "the time range; other cases are of all data.",
    ):
        found = marts.data_quality(scope)
        st.markdown("\n".join(map(_advice, found.iter_rows(named=True))) or NOTHING_FOUND)
        downloads.parquet(found, "findings")
with panel("Rejected rows", "raw.rejects", help="Rejected with the reason, never dropped."):
    places.table("data_health.rejects", tables.without_folders(marts.rejects()))
if not is_polled:
    live_sources()
with panel("Statements", "statements.jsonl", help="Delivered statements, and failures."):
    delivered_statements.show()
with panel(
    "Notifications", "state.notifications", help="Messages about findings: sent, failed, waiting."
):
    notification_panel.show()
replay_panel.show()
audit_log.show()
st.caption(marts.own_cost())
