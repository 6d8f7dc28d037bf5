"""Flags: the open findings of a run, node or GPU, beside its title and in rows that name it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl
import streamlit as st

from goodput_app.dashboard import flags, severities, theme
from goodput_app.dashboard.components import redraw, scope_bar
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.severities import LOOKS
from goodput_app.dashboard.table_columns import Columns

PAGE = "pages/open_findings.py"
URL_PATH = "findings"
KEY = "flags_of_page"
SUBJECTS = {"gpu_uuid": "gpu", "run_key": "run", "node": "node"}  # of a row -> of a page
COLUMN = "flag"
SAYS_WHY = frozenset({"verdict", "cause", "label", "coincides", "reason"})  # columns of a table
WIDTH_PX, SHORT_WIDTH_PX = 215, 86
IN_TITLE = 3


def begin(view: View) -> None:
    """Look up the flags of the page that is drawn; draw it again when a first answer comes."""
    st.session_state[KEY] = found = flags.known(view.scope)
    if found is None and flags.IS_EVALUATED:
        redraw.draw_again_when("flags", lambda: flags.known(view.scope) is not None)


def title(**subject: str | None) -> None:
    """Draw the open findings of a run, node or GPU; subject: its column and value."""
    ((column, value),) = subject.items()
    found = _of_page()
    if found is None or value is None:
        return
    rows = found.filter(pl.col(column) == value)
    if rows.is_empty():
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for row in rows.head(IN_TITLE).iter_rows(named=True):
            icon = LOOKS[row["severity"]].icon
            label = f"{icon} {row['severity']}: {theme.markdown_text(row['title'])}"
            st.page_link(PAGE, label=label, query_params=_params(row["finding_key"]))
        if rows.height > IN_TITLE:
            st.caption(f"and {rows.height - IN_TITLE:,} more")


def flagged_first(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return a table with the rows whose column names what has a finding first, worst on top."""
    found = _of_page()
    if found is None:
        return frame
    ranks = pl.col("severity").replace_strict({one: n for n, one in enumerate(LOOKS)})
    worst = found.drop_nulls(column).group_by(column).agg(flag_rank=ranks.min())
    ranked = frame.join(worst, on=column, how="left", maintain_order="left")
    return ranked.sort("flag_rank", nulls_last=True, maintain_order=True).drop("flag_rank")


def marked(
    frame: pl.DataFrame, names: Columns, wide: Mapping[str, Any] | None
) -> tuple[pl.DataFrame, Columns, Mapping[str, Any] | None]:
    """Return a table with a column of flags, where one of its rows names what has a finding.

    frame, names, wide: as in `tables.pick`. A flag opens its finding, and has its title where no
    column says why. What the page is about has its flags in the title.
    """
    found = _of_page()
    columns = [
        name
        for name, param in SUBJECTS.items()
        if name in frame.columns and not st.query_params.get(param)
    ]
    if found is None or not columns or "finding_key" in frame.columns:
        return frame, names, wide
    is_short = not SAYS_WHY.isdisjoint(names)
    links = pl.coalesce(_links(found, column, frame, is_short) for column in columns)
    frame = frame.with_columns(links.alias(COLUMN))
    if frame[COLUMN].null_count() == frame.height:
        return frame.drop(COLUMN), names, wide
    first, *rest = names.items()
    width = SHORT_WIDTH_PX if is_short else WIDTH_PX
    shown = st.column_config.LinkColumn("Flag", display_text=r"#(.+)$", width=width)
    shown_names = dict([first, (COLUMN, "Flag"), *rest])
    flagged = Columns(shown_names, names.widths, names.hidden, names.formats)
    return frame, flagged, {**(wide or {}), COLUMN: shown}


def _links(found: pl.DataFrame, column: str, frame: pl.DataFrame, is_short: bool) -> pl.Expr:
    """Return the link of the worst finding of each row's subject."""
    wanted = frame[column].drop_nulls().unique()
    of_it = found.filter(pl.col(column).is_in(wanted.implode()))
    worst = of_it.group_by(column, maintain_order=True).agg(
        pl.col("finding_key", "severity", "title").first(), pl.len().alias("number")
    )
    links = {row[column]: _url(row, is_short) for row in worst.iter_rows(named=True)}
    return pl.col(column).replace_strict(links, default=None, return_dtype=pl.String)


def _url(row: Mapping[str, Any], is_short: bool) -> str:
    more = f" (+{row['number'] - 1})" if row["number"] > 1 else ""
    title = "" if is_short else f": {row['title']}"
    text = quote(f"{severities.in_text(row['severity'])}{title}{more}")
    return f"{URL_PATH}?{urlencode(_params(row['finding_key']))}#{text}"


def _params(finding: str | None) -> dict[str, str]:
    params = scope_bar.carried(node=None, team=None, run=None)
    return params | ({"finding": finding} if finding else {})


def _of_page() -> pl.DataFrame | None:
    found: pl.DataFrame | None = st.session_state.get(KEY)
    return found
