"""Notifications on the Data page: targets, failures, messages that wait, a test message."""

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action
from goodput_app.dashboard import notifying, theme
from goodput_app.dashboard.components import tables, wall
from goodput_app.dashboard.table_columns import headers
from goodput_app.process.store import current_store
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_messages.targets import Owner
from goodput_queries.errors import GoodputError

WAITING = headers("notification_panel.waiting")


def show() -> None:
    """Draw how notifications fare, and the button that tries one."""
    if not settings().notify:
        st.caption("Nobody is notified of findings: see `[[notify]]` in goodput.toml.")
        return
    store = current_store()
    found = notifying.receivers(store)
    failing = found.filter(pl.col("failed_at").is_not_null())
    if failing.height:
        lines = "".join(
            f"\n- {theme.markdown_text(row['target'])}: {theme.markdown_text(row['error'] or '')}"
            for row in failing.iter_rows(named=True)
        )
        st.error(
            f"{failing.height} of {units.count(found.height, 'target')} are failing.{lines}",
            icon=":material/notifications_off:",
        )
    tables.show(found, headers("notification_panel.receivers").filled(found), "receivers", rows=6)
    waiting = notifying.waiting(store)
    if waiting.is_empty():
        st.caption("No message waits.")
    else:
        with st.expander(
            f"{units.count(waiting.height, 'message')} waiting", icon=":material/outbox:"
        ):
            tables.show(waiting, WAITING.filled(waiting), "outbox", rows=8)
    if not wall.is_on():
        _test()


def _test() -> None:
    identity = current_identity()
    if not identity.may(Action.TEST_NOTIFICATION):
        st.caption("Operators send test messages; ask an admin for that role.")
        return
    named = {one.label: one for one in settings().notify}
    with (
        st.form("test_notification", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="small"),
    ):
        label = st.selectbox(
            "Test message to", list(named), key="notify_target", format_func=theme.printable,
            width=240,
        )  # fmt: skip
        user = ""
        if any(isinstance(one, Owner) for one in named.values()):
            user = st.text_input(
                "User", identity.name, key="notify_user", width=180,
                help="Whom a target `owner` writes to.",
            )  # fmt: skip
        if not st.form_submit_button("Send a test message", icon=":material/send:"):
            return
    try:
        with st.spinner("Sending"):
            notifying.send_test(current_store(), label, user.strip())
    except GoodputError as error:
        st.warning(theme.markdown_text(error), icon=":material/error:")
    else:
        st.success(f"{theme.markdown_text(label)} took the test message.", icon=":material/check:")
