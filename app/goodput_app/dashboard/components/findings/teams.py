"""Which teams lose most, with the way to their pages."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, scope_bar, tables
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.table_columns import Columns
from goodput_app.weekly import ledger_groups
from goodput_app.weekly.words import NO_TEAM
from goodput_queries.scope import Scope

TEAMS = Columns({
    "team": "Team",
    "wasted_cost": "Wasted cost",
    "wasted_ms": "Wasted",
    "own_waste_cost": "Team-caused waste",
    "platform_waste_cost": "Infrastructure-caused waste",
    "own_waste_ms": "Team-caused waste",
    "platform_waste_ms": "Infrastructure-caused waste",
    "unallocated_ms": "Unallocated",
    "executing_idle_ms": "Executing idle",
})  # fmt: skip
PAGES = {  # of a team
    "pages/fleet_overview.py": ("Overview", ":material/dashboard:"),
    "pages/all_runs.py": ("Runs", ":material/play_circle:"),
    "pages/cost_statement.py": ("Statement", ":material/payments:"),
}


def draw(waste: pl.DataFrame, idle: pl.DataFrame, scope: Scope) -> None:
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
    frame, columns = changes.of_waste(frame, TEAMS.hiding(more), scope, ("team",))
    picked = tables.pick(
        frame.with_columns(pl.col("team").fill_null(NO_TEAM)), columns, "waste_team", ids, rows=8,
        first_opens=[{"team": team} if team else {"waste_team": ""} for team in ids],
    )  # fmt: skip
    if picked is None:
        st.caption(
            "The rows add up to what was wasted. Click a team to see it alone, "
            "select a row for its pages."
        )
        return
    places.facts(picked, columns.details)
    if team := st.query_params["waste_team"]:
        with st.container(horizontal=True, gap="small"):
            for page, (name, icon) in PAGES.items():
                label = f"{name} of {theme.markdown_text(team)}"
                params = scope_bar.carried(team=team)
                st.page_link(page, label=label, icon=icon, query_params=params)
