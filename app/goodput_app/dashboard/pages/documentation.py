"""Help: the documentation, also offline."""

import streamlit as st

from goodput_app import documents

ADDRESS = "help"

st.title("Help", anchor=False)
asked = st.query_params.get("doc", "dashboard")
name = asked if asked in documents.TITLES else "dashboard"
menu, page = st.columns([1, 4], gap="large")
with menu:
    for other, title in documents.TITLES.items():
        st.page_link(
            "pages/documentation.py",
            label=title,
            icon=":material/chevron_right:" if other == name else None,
            query_params={"doc": other},
            width="stretch",
        )
with page:
    st.header(documents.TITLES[name], anchor=False)
    st.markdown(documents.text(name, ADDRESS))
