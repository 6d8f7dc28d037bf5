"""Who is signed in, and the way out: at the end of the side bar."""

import streamlit as st

from goodput_app.access.current import current_identity, is_sign_in_required
from goodput_app.dashboard import theme
from goodput_app.settings import settings


def show() -> None:
    """Draw name and roles of who is signed in; nothing where nobody signs in."""
    if not is_sign_in_required():
        return
    who = current_identity()
    st.caption(f"Signed in ({', '.join(sorted(who.roles))})")
    st.text(who.name)  # Markdown makes a link of an address
    if who.teams is not None:
        st.caption(f"Teams: {theme.markdown_text(', '.join(sorted(who.teams)))}")
    if settings().access.sign_in == "oidc" and st.button(
        "Sign out", key="sign_out", icon=":material/logout:", type="tertiary"
    ):
        st.logout()
        st.stop()
