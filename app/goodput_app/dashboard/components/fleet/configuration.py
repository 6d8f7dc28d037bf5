"""How a node, or the nodes of a run, are configured: differences first, all settings folded."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.table_columns import headers
from goodput_app.text.units import count

NODES_NAMED = 3


def draw(settings: pl.DataFrame) -> None:
    """Draw rows of marts.node_settings: of one node, or of the nodes of one run; none: nothing."""
    if settings.is_empty():
        return
    with panel(
        "Configuration",
        "marts.node_settings",
        help="By snapshots of `goodput snapshot`: settings that differ from those of "
        "the other nodes of the run, or of nodes with the same GPUs, and "
        "settings that are known to cost time.",
    ):
        end = scope_bar.required_view().end
        if settings.filter(pl.col("taken_at") < end).is_empty():
            at = time_zone.moment(settings["taken_at"].item(0))
            st.caption(f"No snapshot was taken before the end of this time range; this is of {at}.")
        nodes, compared = settings["node"].n_unique(), settings.get_column("nodes").max()
        shown = settings.filter(pl.col("is_different") | pl.col("problem").is_not_null())
        if shown.is_empty():
            st.caption(
                f"No setting differs or is known to cost time; {count(nodes, 'node')} of "
                f"{compared!s} compared."
            )
        else:
            found = shown.group_by(
                "setting", "value", "usual_value", "problem", maintain_order=True
            )
            of_nodes = found.agg(
                pl.col("node").head(NODES_NAMED).str.join(", ")
                + pl.when(pl.len() > NODES_NAMED).then(pl.lit(", ...")).otherwise(pl.lit("")),
                pl.len().alias("nodes"),
                pl.col("taken_at").max(),
            )
            tables.show(of_nodes, headers("configuration.differences"), "settings_differ")
        values = (
            settings.group_by("setting", "value", "unknown_because", maintain_order=True)
            .agg(pl.len().alias("nodes"), pl.col("taken_at").max())
            .sort("setting", "nodes", descending=[False, True])
        )
        with st.expander(f"All settings ({settings['setting'].n_unique()})"):
            tables.show(values, headers("configuration.all"), "settings_all")
