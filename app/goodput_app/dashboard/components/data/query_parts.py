"""The parts of the Query page: the editor with saved queries, the result, the catalogue."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl
import streamlit as st

from goodput_app.access import current
from goodput_app.access.identity import LOCAL
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import tables
from goodput_app.dashboard.components.rows import downloads
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import Columns
from goodput_app.process.store import current_store
from goodput_app.sql_access import run_query
from goodput_app.sql_access.formats import MEDIA_TYPES, content
from goodput_app.text import units
from goodput_queries import saved_queries
from goodput_queries.errors import GoodputError, QueryError
from goodput_queries.sandbox.select import Answer
from goodput_queries.sandbox.views import View as SqlView
from goodput_queries.saved_queries import SavedQuery

SQL, PICKED, ANSWERED = "query_sql", "query_saved", "query_answered"
ROWS_DRAWN = 1_000
EDITOR_PX = 260
FIRST = """select team, count(*) as runs, sum(wasted_ms) / 3600000 as wasted_gpu_h
from marts.runs
group by team
order by wasted_gpu_h desc"""
FORMATS = {"csv": "CSV", "json": "JSON", "parquet": "Parquet", "arrow": "Arrow"}
COLUMNS = Columns(
    {"name": "Column", "type": "Type", "unit": "Unit", "meaning": "Meaning"}, {"meaning": 700}
)


@dataclass(frozen=True)
class Answered:
    """An answer, and what was asked: it is shown until the next question."""

    answer: Answer | None
    problem: str
    sql: str
    window: str


def editor(view: View) -> None:
    """Draw saved queries, the statement and what runs or saves it."""
    known = {one.key: one for one in saved_queries.visible(current_store(), _name())}
    st.session_state.setdefault(SQL, FIRST)

    def take() -> None:
        if (key := st.session_state[PICKED]) in known:
            st.session_state[SQL] = known[key].sql

    picked = st.selectbox(
        "Saved query",
        list(known),
        index=None,
        key=PICKED,
        format_func=lambda key: _label(known.get(key)),
        on_change=take,
        placeholder="Choose one, or write your own below",
    )
    if picked in known:
        st.caption(theme.markdown_text(known[picked].meaning))
    most = run_query.limits()
    sql = st.text_area("SQL", key=SQL, height=EDITOR_PX, max_chars=most.sql_max_chars)
    is_asked = st.button("Run", key="query_run", type="primary", icon=":material/play_arrow:")
    st.caption(
        f"One select (DuckDB) in the time range and filters above, read-only. At most "
        f"{most.timeout_s:g} s, {most.memory_mib:,} MiB and {most.rows_max:,} rows. The audit log "
        "records it."
    )
    if is_asked:
        st.session_state[ANSWERED] = _ask(sql, view)
    _saving(sql, known.get(picked) if picked else None)


def result() -> None:
    """Draw the answer to the last question, and what it lacks."""
    answered: Answered | None = st.session_state.get(ANSWERED)
    if answered is None:
        st.caption("Run a query to see its rows.")
        return
    if answered.answer is None:
        st.error("The query was not answered.", icon=":material/error:")
        st.code(answered.problem, language=None, wrap_lines=True)
        return
    answer = answered.answer
    st.caption(f"{units.count(answer.rows.height, 'row')}, {answered.window}.")
    if answer.is_cut:
        st.warning(
            f"There are more: an answer has at most {answer.rows_max:,} rows.",
            icon=":material/content_cut:",
        )
    if answer.is_limited:
        st.info("Rows of other teams are not part of the answer.", icon=":material/visibility_off:")
    st.dataframe(answer.rows.head(ROWS_DRAWN), key="query_rows", hide_index=True)
    if answer.rows.height > ROWS_DRAWN:
        st.caption(f"The first {ROWS_DRAWN:,} are drawn; downloads have all of them.")
    with st.container(horizontal=True):
        for form, name in FORMATS.items():
            data = partial(content, answer, form)
            downloads.button(
                name, data, f"goodput-query.{form}", f"query_{form}", MEDIA_TYPES[form], "tertiary"
            )


def catalogue() -> None:
    """Draw the views that can be selected from, and the columns of one."""
    known = {view.name: view for view in run_query.views(current_store())}
    picked = st.selectbox(
        "View",
        list(known),
        index=None,
        key="query_view",
        placeholder=f"{len(known)} views and tables",
    )
    if picked is None:
        return
    _described(known[picked])


def _described(view: SqlView) -> None:
    st.caption(theme.markdown_text(view.meaning))
    if view.grain:
        st.caption(f"One row for each: {theme.markdown_text(', '.join(view.grain))}.")
    rows = [(column.name, column.type, column.unit, column.meaning) for column in view.columns]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    tables.show(frame, COLUMNS, "query_columns")


def _ask(sql: str, view: View) -> Answered:
    window = time_zone.window(view.start, view.end)
    try:
        answer = run_query.ask(current_store(), sql, view.scope)
    except QueryError as error:
        return Answered(None, str(error), sql, window)
    return Answered(answer, "", sql, window)


def _saving(sql: str, picked: SavedQuery | None) -> None:
    """Draw what saves the statement under a name, or deletes an own one."""
    with st.expander("Save this query", icon=":material/bookmark_add:"):
        with st.form("query_save", border=False, enter_to_submit=False):
            name = st.text_input("Name", key="query_name", max_chars=saved_queries.NAME_MAX_CHARS)
            meaning = st.text_input(
                "Meaning",
                key="query_meaning",
                max_chars=saved_queries.MEANING_MAX_CHARS,
                help="What its rows are.",
            )
            is_shared = st.checkbox(
                "Share with everybody who signs in",
                help="Others see the text of the query; each sees only the rows they may read.",
            )
            is_saved = st.form_submit_button("Save")
        if is_saved:
            _do(lambda: _save(name, meaning, sql, is_shared=is_shared))
        own = _name() or saved_queries.LOCAL
        if picked is None or picked.saved_by != own:
            return
        key = picked.key
        if st.button("Delete the chosen query", type="tertiary", icon=":material/delete:"):
            _do(lambda: saved_queries.delete(current_store(), key, asked_by=_name()))


def _save(name: str, meaning: str, sql: str, *, is_shared: bool) -> None:
    store = current_store()
    saved_queries.save(store, name, meaning, sql, saved_by=_name(), is_shared=is_shared)


def _do(change: Callable[[], object]) -> None:
    """Change what is saved and draw the page again; say why where that fails."""
    try:
        change()
    except GoodputError as error:
        st.error(theme.markdown_text(str(error)), icon=":material/error:")
    else:
        st.rerun()


def _label(one: SavedQuery | None) -> str:
    if one is None:
        return ""
    who = "" if one.saved_by is None else f" ({theme.printable(one.saved_by, 40)})"
    return f"{theme.printable(one.name, saved_queries.NAME_MAX_CHARS)}{who}"


def _name() -> str | None:
    """Return the name under which queries are saved, None where nobody signs in."""
    identity = current.current_identity()
    return None if identity is LOCAL else identity.name
