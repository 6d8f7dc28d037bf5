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
        folder, _, page_name = other.rpartition("/")
        if folder and page_name != "index" and not name.startswith(f"{folder}/"):
            continue  # on a phone the menu is above the text
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
