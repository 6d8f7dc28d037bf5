"""Findings: what needs a person, what to do first, and how much GPU time is recoverable."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.findings import finding_parts as parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings
from goodput_app.text import units

view = scope_bar.required_view()
scope = view.scope

st.title("Findings", anchor=False)
st.caption("What needs a person, and how much GPU time is recoverable?")
found = None
of_link = st.container()  # what a link leads to stands on top
with panel(
    "What to do first",
    "marts.fixes",
    help="Findings by what is to be done. Each loss is in one row only, so that the rows add up.",
):
    found = findings.known(scope)
    parts.follow(scope, found)
    if found is not None:
        with of_link:
            parts.linked(found.findings)
    if found is not None and found.fixes.is_empty():
        st.caption("Nothing to do in this time range.")
    elif found is not None:
        back = units.gpu_time(float(found.fixes["back_ms"].sum()))
        st.caption(f"In total {back} of this time range are recoverable.")
        parts.fixes(found.fixes, found.findings)
if found is not None:
    with panel(
        "Findings",
        "marts.findings",
        help="A finding not seen for half an hour has closed; seen again, it is a new one.",
    ):
        if found.findings.is_empty():
            st.caption("No finding in this time range.")
        else:
            parts.inbox(found.findings)
with panel(
    "Goodput objectives",
    "marts.goodput_objectives",
    help="Time that is known to be of no use spends the error budget, which is all time less the "
    "target. Unclassified time spends none.",
):
    parts.objectives(findings.objectives(scope))
