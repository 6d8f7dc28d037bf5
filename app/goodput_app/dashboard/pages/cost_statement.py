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
from goodput_app.dashboard.components.states import guarded, panel
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

shown = None
with guarded("marts.statement_lines"):
    if not statements.has_rates():
        rate_card.first_price()
    shown = cost_scope.chosen(view)
    if shown.accounts.is_empty():
        cost_scope.nothing(view, shown)
if shown is None or shown.accounts.is_empty():
    st.stop()
with guarded("marts.statement_lines"):
    cost_scope.states(view, shown)
    cost_parts.tiles(shown)
left, right = st.columns(2, gap="medium")
with left, panel("cost_statement.who_pays_and_for_what"):
    highest = figures_cost.highest(shown.accounts)
    if highest.is_empty():
        st.caption("Nothing is charged on these days: no price.")
    else:
        figure = figures_cost.by_account(highest)
        alt = "Charges of each account by what they are for"
        charts.draw(figure, cost_parts.in_browser(highest), "cost-by-account", alt)
with right, panel("cost_statement.cost_by_day"):
    per_day = figures_cost.each_day((day.day.date, day.accounts) for day in shown.days)
    figure = figures_cost.by_day(per_day)
    alt = "Charges of each day by what they are for"
    charts.draw(figure, cost_parts.in_browser(per_day), "cost-by-day", alt)
picked = None
with panel("cost_statement.statement"):
    picked = cost_statement_table.show(view, shown)
with panel("cost_statement.notes_disputes_and_credits"):
    cost_adjustments.show(shown, picked)
left, right = st.columns(2, gap="medium")
with left, panel("cost_statement.budgets"):
    cost_parts.budgets(shown, view.scope.team)
with right, panel("cost_statement.effective_cost_per_gpu_hour"):
    cost_parts.unit_costs(shown)
with panel("cost_statement.tokens_for_cost_and_energy"):
    speed_parts.of_accounts(speed.tokens_by_account(view.scope))
with panel("cost_statement.top_losses_by_cost"):
    details.losses(marts.losses(view.scope))
with panel("cost_statement.files"):
    cost_parts.downloads(shown)
with panel("cost_statement.past_statements"):
    cost_parts.past()
