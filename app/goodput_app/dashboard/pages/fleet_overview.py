"""Overview: where the GPU-hours went, and what to do first."""

import streamlit as st

from goodput_app.dashboard import comparison, theme, time_zone
from goodput_app.dashboard.components import charts, details, scope_bar, states, tiles
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.components.fleet import now_strip, overview_parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, ledger_groups, marts
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.text import headline

view = scope_bar.required_view()
scope = view.scope

st.title("Overview", anchor=False)
st.caption("What is wrong now, where did the GPU-hours go, and what to do first?")
states.runs_withheld(view)
now = st.container()  # findings take longest: they are begun last, and follow
last_tile = None
with panel("", "marts.goodput_summary"):
    summary = marts.goodput_summary(scope).row(0, named=True)
    ladder = marts.evidence_ladder(scope).row(0, named=True)
    first = headline.headline(summary, ladder, scope)
    before = comparison.before(scope, summary)
    change = None
    if before.summary is not None and before.scope is not None:
        then = marts.evidence_ladder(before.scope).row(0, named=True)
        earlier = headline.headline(before.summary, then, before.scope)
        if earlier.rung == first.rung:
            change = tiles.points(first.ratio, earlier.ratio)
    over_time = marts.goodput_over_time(scope)
    last_tile = tiles.of_fleet(summary, first, before.summary, change, over_time)
    if (said := headline.communication(summary)) is not None:
        st.caption(theme.markdown_text(said))
    if before.summary is not None:
        span = time_zone.window(view.start - (view.end - view.start), view.start)
        st.caption(f"Changes: against {span}.")
    elif before.reason is not None:
        st.caption(theme.markdown_text(before.reason))

known = ledger_groups.groups()
names = dict(known.select("ledger_group", "label").unique(maintain_order=True).rows())
picker, _ = st.columns([1, 3])
with picker:
    scope_bar.choice("group", "Show the parts of", names, none="No group")
opened = st.query_params.get("group")
left, right = st.columns(2, gap="medium")
with (
    left,
    panel(
        "From capacity to goodput",
        "marts.ledger_by_category",
        help="Every GPU-second is in exactly one bar: losses and goodput add up to the capacity.",
    ),
):
    of_categories = marts.ledger_by_category(scope)
    ledger = ledger_groups.grouped(of_categories, known, opened)
    rows = ledger.drop("colour").filter(ledger["gpu_ms"] > 0)
    figure = figures.waterfall(ledger)
    charts.draw(figure, rows, "waterfall", "Capacity less each loss, down to goodput")
with (
    right,
    panel(
        "GPUs by category over time",
        "marts.ledger_over_time",
        help="The stack adds up to the capacity.",
    ),
):
    of_categories = marts.ledger_by_category(scope)
    ledger = ledger_groups.grouped(of_categories, known, opened)
    parts = ledger_groups.of_categories(of_categories, known)
    over_time = ledger_groups.over_time(marts.ledger_over_time(scope), parts, opened)
    figure = figures.categories_over_time(
        over_time,
        ledger,
        scope.bucket_ms or 1,
        view.window,
        figures.waterfall_height(ledger) + figures.LEGEND_PX,
    )
    charts.over_time(figure, over_time, "over-time", "GPUs in each category over time, stacked")

fixes = st.container()
with panel(
    "Top losses by cost",
    "marts.loss_causes",
    help="Pick a row to see why, how sure, and where to look.",
):
    details.losses(marts.losses(scope))
left, right = st.columns(2, gap="medium")
with (
    left,
    panel("Teams by waste", "marts.waste_by_team", help="What each team lost, and who caused it."),
):
    overview_parts.teams(ledger_groups.waste(scope), ledger_groups.executing_idle(scope))
with (
    right,
    panel(
        "What moved",
        "marts.waste_by_team",
        help="Why more or less was lost than in the window before, by group and team.",
    ),
):
    if before.scope is not None:
        overview_parts.moved(scope, before.scope)
    else:
        st.caption(theme.markdown_text(before.reason or "There is no data from before this range."))
found, is_asked = None, False
with now, panel("", "marts.findings"):
    found = findings.known(scope)
    is_asked = True
    now_strip.draw(None if found is None else found.findings, findings.losing_now(scope), view)
    if last_tile is not None and found is not None:
        with last_tile:
            tiles.runs_at_risk(found.findings, summary)
    if found is not None and (idle := headline.executing_idle(*found.executing_idle)):
        st.caption(theme.markdown_text(idle))
with (
    fixes,
    panel(
        "What to do first",
        "marts.fixes",
        help="Findings by what is to be done, with the recoverable GPU time. Pick a row.",
    ),
):
    if is_asked:
        finding_parts.follow(scope, found)
    if found is not None:
        finding_parts.top_fixes(found.fixes)
