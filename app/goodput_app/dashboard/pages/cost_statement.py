"""Cost: who pays what, and why."""

import streamlit as st

from goodput_app.dashboard.components import charts, details, scope_bar
from goodput_app.dashboard.components.cost import (
    cost_adjustments,
    cost_parts,
    cost_scope,
    cost_statement_table,
    rate_card,
    what_if,
)
from goodput_app.dashboard.components.runs import speed_parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import marts, speed, statements
from goodput_app.dashboard.figures import cost as figures_cost

view = scope_bar.required_view(scope_bar.COST_RANGE)

st.title("Cost", anchor=False)
st.caption("Who pays what, and why?")
part = cost_scope.section()
if part == "prices":
    rate_card.show()
    st.stop()
if part == "what-if":
    what_if.show(view)
    st.stop()

shown = before = None
with panel("", "marts.statement_lines"):
    if not statements.has_rates():
        rate_card.first_price()
    shown = cost_scope.chosen(view)
    if shown.accounts.is_empty():
        cost_scope.nothing(view, shown)
if shown is None or shown.accounts.is_empty():
    st.stop()
with panel("", "marts.statement_lines"):
    cost_scope.states(view, shown)
    before = cost_scope.earlier(view, shown)
    cost_parts.tiles(shown, before)
    cost_scope.compared(before, len(shown.days))
left, right = st.columns(2, gap="medium")
with left, panel("Who pays, and for what", "marts.statement_lines", help="Bars add up to totals."):
    highest = figures_cost.highest(shown.accounts)
    if highest.is_empty():
        st.caption("Nothing is charged on these days: no price.")
    else:
        figure = figures_cost.by_account(highest)
        alt = "Charges of each account by what they are for"
        charts.draw(figure, cost_parts.in_browser(highest), "cost-by-account", alt)
with right, panel("Cost by day", "marts.statement_lines", help="Days of the statement's zone."):
    per_day = figures_cost.each_day((day.day.date, day.accounts) for day in shown.days)
    figure = figures_cost.by_day(per_day)
    alt = "Charges of each day by what they are for"
    charts.draw(figure, cost_parts.in_browser(per_day), "cost-by-day", alt)
picked = None
with panel("Statement", "marts.statement_lines", help="What `goodput report` bills, day by day."):
    picked = cost_statement_table.show(view, shown, before)
with panel(
    "Notes, disputes and credits",
    "billing.adjustments",
    help="Beside the amounts of a day, which never change; a credit is a line of a later day.",
):
    cost_adjustments.show(shown, picked)
left, right = st.columns(2, gap="medium")
with left, panel("Budgets", "marts.statement_budgets"):
    cost_parts.budgets(shown, view.scope.team)
with right, panel("Effective cost per GPU-hour", "marts.statement_lines"):
    cost_parts.unit_costs(shown)
with panel(
    "Tokens for cost and energy",
    "marts.tokens_by_account",
    help="Tokens of steps that were not lost, for all time allocated to the runs.",
):
    speed_parts.of_accounts(speed.tokens_by_account(view.scope))
with panel(
    "Top losses by cost",
    "marts.loss_causes",
    help="Of the time range above; select one for its evidence.",
):
    details.losses(marts.losses(view.scope))
with panel(
    "Files", "billing.statement_days", help="The same database and day give the same bytes."
):
    cost_parts.downloads(shown)
with panel(
    "Past statements", "statements.jsonl", help="Statements that were written and delivered before."
):
    cost_parts.past()
