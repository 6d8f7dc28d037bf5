"""Notes on runs: what people know of them, and the form for another one."""

import polars as pl
import streamlit as st

from goodput_app.access import audit
from goodput_app.access.current import current_identity, is_sign_in_required
from goodput_app.access.identity import Action
from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places
from goodput_app.process.store import current_store
from goodput_queries import run_notes
from goodput_queries.errors import GoodputError
from goodput_scenarios.comparison.compare import Comparison


def of_comparison(found: Comparison, notes: pl.DataFrame) -> None:
    """Draw the notes on the runs of both sides, and the form. notes: of them, marts.run_notes."""
    places.table("compare.notes", notes)
    names = pl.concat([found.a.runs, found.b.runs]).select("run_key", "run_id").unique()
    if names.height in (1, 2):
        _form(dict(names.sort("run_key").rows()))


def _form(runs: dict[str, str]) -> None:
    """Draw the form with which a person writes a note. runs: names by key."""
    who = current_identity()
    if not who.may(Action.NOTE_RUN):
        st.caption("Operators write notes; ask an admin for that role.")
        return
    with st.form("note_on_run", border=False, clear_on_submit=True):
        run, name, note = st.columns([1, 1, 3])
        run.selectbox(
            "Run", list(runs), key="note_run", format_func=lambda key: theme.printable(runs[key])
        )
        if is_sign_in_required():
            name.text_input("Your name", value=who.name, key="signed_in_as", disabled=True)
        else:
            name.text_input("Your name", key="said_by", max_chars=run_notes.NAME_MAX_CHARS)
        text = note.text_input("Note", max_chars=run_notes.NOTE_MAX_CHARS)
        is_asked = st.form_submit_button("Add note")
    if not is_asked:
        return
    said_by = who.name if is_sign_in_required() else st.session_state["said_by"]
    run_key = st.session_state["note_run"]
    try:
        with audit.acting(current_store(), Action.NOTE_RUN, f"note on {runs[run_key]}"):
            run_notes.record(current_store(), run_key, text, said_by=said_by)
    except GoodputError as error:
        st.error(theme.markdown_text(str(error)))
    else:
        st.rerun()
