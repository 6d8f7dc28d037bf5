"""Parts of the Overview: which teams lose most, and what changed since the window before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, scope_bar, tables
from goodput_app.dashboard.data import ledger_groups
from goodput_app.text import units

if TYPE_CHECKING:
    from goodput_queries.scope import Scope

NO_TEAM = "(no team)"
MOVED_SHOWN = 12
TEAMS = {
    "team": "Team",
    "wasted_cost": "Wasted cost",
    "wasted_ms": "Wasted",
    "own_waste_cost": "Team-caused waste",
    "platform_waste_cost": "Infrastructure-caused waste",
    "own_waste_ms": "Team-caused waste",
    "platform_waste_ms": "Infrastructure-caused waste",
    "unallocated_ms": "Unallocated",
    "executing_idle_ms": "Executing idle",
}
MOVED = {
    "label": "Group",
    "team": "Team",
    "change_ms": "Change of waste",
    "change_cost": "Change of wasted cost",
}
PAGES = {  # of a team
    "pages/fleet_overview.py": ("Overview", ":material/dashboard:"),
    "pages/all_runs.py": ("Runs", ":material/play_circle:"),
    "pages/cost_statement.py": ("Statement", ":material/payments:"),
}


def teams(waste: pl.DataFrame, idle: pl.DataFrame) -> None:
    """Draw what each team lost, with the way to its pages.

    waste: marts.waste_by_team; idle: marts.executing_idle_by_team
    """
    if waste.is_empty():
        st.caption("Nothing was lost in this time range.")
        return
    frame = ledger_groups.by_team(waste, idle)
    ids = frame["team"].fill_null("")
    # half a page has room for money or for time, and for no more
    unit = "_ms" if frame["wasted_cost"].count() else "_cost"
    more = [name for name in TEAMS if name.endswith(unit) or name == "executing_idle_ms"]
    picked = tables.pick(_named(frame), TEAMS, "waste_team", ids, rows=8, hidden=more)
    if picked is None:
        st.caption("The rows add up to the tile Wasted. Select a row for the pages of the team.")
        return
    places.facts(picked, {name: TEAMS[name] for name in more})
    if team := st.query_params["waste_team"]:
        with st.container(horizontal=True, gap="small"):
            for page, (name, icon) in PAGES.items():
                label = f"{name} of {theme.markdown_text(team)}"
                params = scope_bar.carried(team=team)
                st.page_link(page, label=label, icon=icon, query_params=params)


def moved(scope: Scope, earlier: Scope) -> None:
    """Draw by how much each group and team lost more or less than in the window before."""
    rows = ledger_groups.moved(
        ledger_groups.waste(scope),
        ledger_groups.waste(earlier),
        units.money_decimals(),
        MOVED_SHOWN,
    )
    if rows.is_empty():
        st.caption("Nothing changed.")
        return
    is_row = ~pl.col("label").is_in([ledger_groups.OTHERS, ledger_groups.TOTAL])
    tables.show(_named(rows, is_row), MOVED, "moved", rows=MOVED_SHOWN + 2)
    st.caption("The rows add up to the last one, the change of the tile Wasted.")


def _named(frame: pl.DataFrame, where: pl.Expr | None = None) -> pl.DataFrame:
    """Return the rows with a name for those of no team."""
    is_nobody = pl.col("team").is_null() & (pl.lit(True) if where is None else where)
    return frame.with_columns(
        pl.when(is_nobody).then(pl.lit(NO_TEAM)).otherwise("team").alias("team")
    )
