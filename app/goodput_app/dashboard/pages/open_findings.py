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
with panel("open_findings.what_to_do_first"):
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
    with panel("open_findings.findings"):
        if found.findings.is_empty():
            st.caption("No finding in this time range.")
        else:
            parts.inbox(found.findings)
with panel("open_findings.goodput_objectives"):
    parts.objectives(findings.objectives(scope))
