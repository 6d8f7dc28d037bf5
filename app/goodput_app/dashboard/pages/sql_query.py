"""Query: what the views say on a question that no page asks."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.data import query_parts
from goodput_app.dashboard.components.states import panel

view = scope_bar.required_view()
st.title("Query", anchor=False)
st.caption("Query the views behind the pages in SQL.")
with panel("", "state.saved_queries"):
    query_parts.editor(view)
with panel("Result", "marts"):
    query_parts.result()
with panel(
    "Views", "marts", help="Views and tables for queries, limited to the time range and filters."
):
    query_parts.catalogue()
