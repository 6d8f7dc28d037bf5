"""The audit log on the Data page, for admins."""

import streamlit as st

from goodput_app.access import rows
from goodput_app.access.current import current_identity, is_sign_in_required, require
from goodput_app.access.identity import Action
from goodput_app.dashboard.components import tables
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.table_columns import headers
from goodput_app.process.store import current_store
from goodput_queries import audit

ENTRIES_SHOWN = 500
COLUMNS = headers("audit_log.columns")


def show() -> None:
    """Draw the latest entries where people sign in and this one may read them."""
    if not (is_sign_in_required() and current_identity().may(Action.READ_AUDIT_LOG)):
        return
    with panel("Audit log", "state.audit_log", help="Who signed in, changed or downloaded what."):
        require(Action.READ_AUDIT_LOG)
        rows.require_all_teams("entries of the audit log")
        found = audit.entries(current_store(), ENTRIES_SHOWN)
        if found.is_empty():
            st.caption(f"Nothing is recorded in the last {audit.KEPT_DAYS} days.")
        else:
            tables.show(found, COLUMNS, "audit_log", rows=10)
            st.caption(f"Kept for {audit.KEPT_DAYS} days; all: `goodput audit`.")
