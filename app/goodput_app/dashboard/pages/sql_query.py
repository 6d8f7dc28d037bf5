"""Query: what the views say on a question that no page asks."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.data import query_parts
from goodput_app.dashboard.components.states import guarded, panel

view = scope_bar.required_view()
st.title("Query", anchor=False)
st.caption("Query the views behind the pages in SQL.")
with guarded("state.saved_queries"):
    query_parts.editor(view)
with panel("sql_query.result"):
    query_parts.result()
with panel("sql_query.views"):
    query_parts.catalogue()
