"""Overview: what is wrong now, where the GPU-hours went, and what to do first."""

import streamlit as st

from goodput_app.access import rows
from goodput_app.dashboard import theme
from goodput_app.dashboard.components import (
    charts,
    details,
    redraw,
    scope_bar,
    states,
    tiles,
    time_picker,
    wall,
)
from goodput_app.dashboard.components.findings import finding_parts, teams
from goodput_app.dashboard.components.fleet import fleet_wall
from goodput_app.dashboard.components.overview import actions, ledger, moved, status
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.components.runs import speed_parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, health, ledger_groups, marts, speed
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.text import headline
from goodput_queries.catalog.rules import rules

CHART_PX = 300
COST_PAGE, REPORT_PAGE = "pages/cost_statement.py", "pages/weekly_report.py"
HEADING = '<div class="gp-heading" role="heading" aria-level="2">{}<small>{}</small></div>'

view = scope_bar.required_view()
scope = view.scope
baseline = time_picker.baseline()
if wall.is_on() and rows.sees_all(scope):
    with panel("", "marts.gpu_states"):
        fleet_wall.draw(view)
    wall.leave(scope_bar.go)
    st.stop()

st.html(theme.look("bars", "status", "ledger", "actions"))
st.title("Overview", anchor=False)
states.runs_withheld(view)
now = st.container()  # findings take longest: they are begun last, and follow
known = ledger_groups.groups()
compared = None
with panel("", "marts.goodput_summary"):
    summary = marts.goodput_summary(scope).row(0, named=True)
    ladder = marts.evidence_ladder(scope).row(0, named=True)
    compared = ledger_groups.compared(scope, baseline)
    of_categories = marts.ledger_by_category(scope)
    groups = ledger_groups.grouped(of_categories, known)
    ledger.draw(summary, headline.headline(summary, ladder, scope), groups, compared)
left, right = st.columns([3, 2], gap="small")
with left:
    todo = st.container(border=True, key="actions", height="stretch", gap="xsmall")
with (
    right,
    st.container(border=True, height="stretch", gap="xsmall"),
    panel("", "marts.ledger_by_category"),
):
    st.html(HEADING.format("What moved", "waste where both windows have data"))
    if compared is None:
        st.caption(changes.nothing(baseline))
    else:
        moved.draw(compared)
    with st.container(horizontal=True, gap="small"):
        carried = scope_bar.carried()
        icon = ":material/payments:"
        st.page_link(COST_PAGE, label="Cost of this range", icon=icon, query_params=carried)
        week = {name: value for name, value in carried.items() if name not in ("from", "to")}
        icon = ":material/summarize:"
        st.page_link(REPORT_PAGE, label="Weekly report", icon=icon, query_params=week)
with panel(
    "GPUs by group over time",
    "marts.ledger_over_time",
    help="The stack adds up to the capacity. Drag to zoom.",
):
    of_categories = marts.ledger_by_category(scope)  # also where the panel above has failed
    groups = ledger_groups.grouped(of_categories, known)
    parts = ledger_groups.of_categories(of_categories, known)
    over_time = ledger_groups.over_time(marts.ledger_over_time(scope), parts)
    figure = figures.categories_over_time(
        over_time, groups, scope.bucket_ms or 1, view.window, CHART_PX + figures.LEGEND_PX
    )
    figures.marked(figure, status.marks(health.outages_seen(scope), view), view.window)
    charts.over_time(figure, over_time, "over-time", "GPUs in each group over time, stacked")

found = None
with now, panel("", "marts.findings"):
    of_now = findings.known(latest := scope_bar.latest(view))
    status.draw(of_now, len(rules()), marts.clusters(), health.outages_seen(latest), view)
with todo, panel("", "marts.fixes"):
    st.html(HEADING.format("What to do first", "highest saving in this range first"))
    found = findings.known(scope)
    if found is not None:
        actions.draw(found.fixes)
    finding_parts.follow(scope, found)
    if latest != scope and not findings.is_evaluated(latest):
        redraw.draw_again_when("status", lambda: findings.has_newer(latest, of_now))

with states.folded("Ledger by category", "category") as is_open:
    if is_open:
        with panel("All categories", "marts.ledger_by_category"):
            ledger.categories(marts.ledger_by_category(scope))
with states.folded("Teams by waste", "waste_team") as is_open:
    if is_open:
        with panel("", "marts.waste_by_team"):
            waste = ledger_groups.waste(scope)
            teams.draw(waste, ledger_groups.executing_idle(scope), scope)
with states.folded("Top losses by cost", "loss") as is_open:
    if is_open:
        with panel("", "marts.loss_causes"):
            details.losses(marts.losses(scope))
with states.folded("Work for cost and energy", "work") as is_open:
    if is_open:
        with panel("", "marts.work_by_gpu_model"):
            speed_parts.of_models(speed.work_by_model(scope))
with states.folded("Allocated, active, executing idle", "allocation") as is_open:
    if is_open:
        with panel("", "marts.losing_now"):
            summary = marts.goodput_summary(scope).row(0, named=True)
            tiles.of_allocation(summary, findings.losing_now(scope))
            tiles.of_ratios(summary)
            idle = None if found is None else headline.executing_idle(*found.executing_idle)
            for said in filter(None, (headline.communication(summary), idle)):
                st.caption(theme.markdown_text(said))
