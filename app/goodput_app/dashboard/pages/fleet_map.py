"""Fleet: which GPUs, now and over time."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import flags, theme
from goodput_app.dashboard.components import places, scope_bar, tiles, wall
from goodput_app.dashboard.components.fleet import fleet_now, fleet_parts, fleet_wall, what_happened
from goodput_app.dashboard.components.states import panel, require_all_teams
from goodput_app.dashboard.data import findings, fleet, marts
from goodput_app.text import headline

view = scope_bar.required_view()
if not wall.is_on():
    st.title("Fleet", anchor=False)
require_all_teams(view.scope)
if wall.is_on():
    with panel("", "marts.gpu_states"):
        fleet_wall.draw(view)
    wall.leave(scope_bar.go)
    st.stop()
found = findings.latest_known(flags.scope_of(view.scope))
of_place = marts.of_any_owner(view.scope, view.scope.bucket_ms)
ledger = marts.ledger_by_category(of_place)
with panel("", "marts.gpu_states"):
    states = fleet.gpu_states(view.scope)
    said = fleet_now.sentence(states, marts.queue_waits(of_place, "team"))
    st.markdown(f"**{theme.markdown_text(said, 300)}**")
    if view.scope.team or view.scope.run:
        st.caption("All GPUs are shown: the team and run filters do not apply here.")
    summary = marts.goodput_summary(of_place).row(0, named=True)
    ladder = marts.evidence_ladder(of_place).row(0, named=True)
    first = headline.headline(summary, ladder, of_place)
    three = fleet_now.three(summary, first, findings.losing_now(of_place), states)
    tiles.row("fleet-tiles", [(name, value, of) for value, name, of in three])
    show, sort, shown = fleet_parts.choose(states)
    if shown.is_empty():
        st.info("No GPU of this rack in this time range.", icon=":material/hourglass_empty:")
        st.button("All racks", on_click=scope_bar.go, args=({"rack": None},))
        st.stop()
with panel("GPUs by rack", "marts.gpu_states", help="At the end of the time range."):
    coloured = fleet_parts.grouped(shown, ledger) if show is None else shown
    fleet_parts.grid(coloured, show, fleet_now.marks(found))
with panel("What is wrong", "marts.findings", help="Open now, the worst first."):
    fleet_now.wrong(found)
happened = pl.DataFrame()
lanes, beside = st.columns([3.1, 1], gap="small")
with (
    lanes,
    st.container(border=True),
    panel(
        "Over time",
        "marts.node_category_bins",
        help="The same colours over the time range, and which runs had GPUs.",
    ),
):
    fleet_parts.over_time(view, shown, show, sort, ledger)
with (
    beside,
    st.container(border=True),
    panel("Events", "marts.findings", help="The worst of all sources in one list."),
):
    of_nodes = shown if st.query_params.get("rack") else None
    happened, is_part = fleet_now.happened(view.scope, found, of_nodes)
    what_happened.brief(what_happened.worst(happened, what_happened.FLEET_BRIEF))
    if happened.height:
        place = "" if of_nodes is None else " What names no node of the rack is left out."
        st.caption(f"Of {'at least ' * is_part}{what_happened.counted(happened)}.{place}")
if happened.height:
    with panel("What happened", "marts.findings", help="With reason, source and cost."):
        listed = what_happened.worst(happened, what_happened.FLEET_ROWS)
        what_happened.draw(listed, what_happened.OF_FLEET, shown=8)
        if listed.height < happened.height:
            st.caption(f"{listed.height} of {happened.height:,}, the worst by severity and cost.")
with panel("Racks", "marts.racks", help="Sums of the nodes of a rack in the time range."):
    fleet_parts.racks_table(fleet.racks(view.scope))
with panel(
    "Unallocated",
    "marts.unallocated_gpus",
    help="At the end of the time range: the largest block for a job, and why others are not free.",
):
    places.table("fleet.unallocated", fleet.unallocated(view.scope))
with panel(
    "Active but not allocated",
    "marts.busy_unallocated",
    help="GPUs that were active without an allocation, on nodes of a scheduler.",
):
    places.table("fleet.busy", fleet.busy_unallocated(view.scope))
