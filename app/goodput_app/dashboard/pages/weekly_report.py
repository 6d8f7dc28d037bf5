"""Report: what a week came to, what moved it, and what to do; two pages in print."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar, time_picker
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.components.overview import moved
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, health, ledger_groups, marts, statements
from goodput_app.weekly import week
from goodput_app.weekly.words import LOSSES_SHOWN, Writer, place

WEEK = timedelta(days=7)
NONE_SET = "No objective and no budget is set: [[objectives]] in goodput.toml, budgets on Cost."

view = scope_bar.week_of(scope_bar.required_view())
scope = replace(view.scope, bucket_ms=None)
words = Writer(theme.markdown_text, time_zone.moment)
starts = time_zone.local(view.start)
monday = (starts - timedelta(days=starts.weekday())).replace(
    hour=0, minute=0, second=0, microsecond=0
)
sunday = monday + timedelta(days=6)


def _go(start: datetime) -> None:
    times = (at.astimezone(UTC).replace(tzinfo=None) for at in (start, start + WEEK))
    scope_bar.go(dict(zip(("from", "to"), map(time_zone.iso, times), strict=True)))


def _links(losses: pl.DataFrame) -> None:
    """Draw a link for each loss of the table, to its run in this week, else to its category."""
    times = {"from": time_zone.iso(view.start), "to": time_zone.iso(view.end)}
    with st.container(horizontal=True, key="losses-of-week"):
        for row in losses.head(LOSSES_SHOWN).iter_rows(named=True):
            params = scope_bar.carried(
                cluster=row["cluster"], run=row["run_key"], team=row["team"] or scope.team
            )
            if not row["run_key"]:
                params |= {"category": row["category"], "blame": row["blame"]}
            page = "one_run" if row["run_key"] else "idle_gaps"
            label = theme.markdown_text(f"{row['label']}, {place(row)}")
            st.page_link(f"pages/{page}.py", label=label, query_params=params | times)


is_whole = monday + WEEK <= time_zone.local(view.as_of)
name_of = f"Week {'of' if is_whole else 'so far,'} {monday:%d %B} to {sunday:%d %B %Y}"
first_at, _ = scope_bar.extent_of(scope.cluster)
has_earlier = time_zone.local(first_at) < monday
has_later = monday + 2 * WEEK <= time_zone.local(view.as_of)
with st.container(horizontal=True, vertical_alignment="bottom"):
    st.title(name_of, anchor=False)
    st.button("Previous week", on_click=_go, args=(monday - WEEK,), disabled=not has_earlier)
    st.button("Next week", on_click=_go, args=(monday + WEEK,), disabled=not has_later)
st.html(theme.look("bars"))
filters = "".join(f", {name} {value}" for name, value in view.filters.items())
st.caption(theme.markdown_text(f"{time_zone.window(view.start, view.end)}{filters}"))
of_week = None
with panel("", "marts.goodput_summary"):
    of_week = week.week(scope, marts.clusters(), marts.read, ledger_groups.grouped,
                        time_picker.baseline())  # fmt: skip
    said = [*words.goodput(of_week), *words.moved(of_week)]
    found = findings.known(scope)
    if found is not None:
        said += words.happened(found.findings, health.repairs(scope))
    st.markdown(" ".join(said))
    finding_parts.follow(scope, found)
if of_week is not None:
    if of_week.compared is not None:
        with panel("What moved", "marts.ledger_by_category"):
            moved.draw(of_week.compared, "this week")
    with panel("Teams by waste", "marts.waste_by_team"):
        st.markdown(words.teams(of_week))
with panel("Largest losses", "marts.loss_causes"):
    losses = marts.losses_of_teams(scope)
    st.markdown(words.losses(losses))
    _links(losses)
with panel("Objectives and budgets", "marts.goodput_objectives"):
    lines = [*words.objectives(findings.objectives(scope))]
    how = statements.chosen(None)
    month = statements.month(statements.days(scope, how)[-1], how)
    lines += words.budgets(month, scope.team)
    st.markdown("\n".join(lines) or NONE_SET)
