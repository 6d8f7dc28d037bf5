"""Changes against the earlier window that a reader chose: columns of tables, and a sentence."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import time_picker
from goodput_app.dashboard.data import energy, ledger_groups
from goodput_app.dashboard.data.ledger_groups import Changed
from goodput_app.dashboard.table_columns import Columns
from goodput_app.text import units
from goodput_app.weekly.like_for_like import NOT_CERTAIN, Baseline, said_of
from goodput_app.weekly.words import wasted_change
from goodput_queries.scope import Scope

OF_ENERGY = ("cluster", "availability", "team")
NOT_BESIDE = ("idle_energy_kwh", "carbon_g_per_useful_gpu_h", "carbon_free_ratio")  # no room


def nothing(baseline: Baseline) -> str:
    """Return why nothing is compared."""
    if baseline.name == "none":
        return "Nothing is compared: the time range says so."
    before = time_picker.BASELINES[baseline.name].lower() if baseline.is_chosen else ""
    of = f"of the {before}" if before else "from before this range"
    return f"There is no data {of} to compare with."


def summary(scope: Scope) -> None:
    """Say how goodput and waste of the scope changed, where a reader chose an earlier window."""
    if not (baseline := time_picker.baseline()).is_chosen:
        return
    if (found := ledger_groups.compared(scope, baseline)) is None:
        st.caption(nothing(baseline))
        return
    said = []
    if found.change is not None:
        direction = "" if found.change.is_certain else f" ({NOT_CERTAIN})"
        said.append(f"goodput {units.points(found.change.ratio)} points{direction}")
    before, after = found.totals
    is_priced = found.wasted == "wasted_cost"
    moved = wasted_change(found) or units.signed(after - before, is_priced=is_priced)
    said.append(f"wasted {moved}")
    text = f"Against {found.windows.name}: {'; '.join(said)}. {said_of(found.windows)}"
    st.caption(theme.markdown_text(text, len(text)))


def of_waste(
    frame: pl.DataFrame,
    names: Columns,
    scope: Scope,
    by: Sequence[str],
    instead: Sequence[str] = (),
) -> tuple[pl.DataFrame, Columns]:
    """Return rows with the change of what each wasted, and the columns; say what is compared.

    They are as given where no earlier window was chosen. by: what identifies a row; instead: the
    columns that give way
    """
    if not (baseline := time_picker.baseline()).is_chosen:
        return frame, names
    found = ledger_groups.wasted_changed(scope, baseline, by)
    return _beside(frame, names.with_hidden(instead), found, by, "waste")


def of_energy(frame: pl.DataFrame, names: Columns, scope: Scope) -> tuple[pl.DataFrame, Columns]:
    """Return rows of accounts with the change of their energy: as `of_waste`."""
    if not (baseline := time_picker.baseline()).is_chosen:
        return frame, names
    found = energy.changed(scope, baseline, OF_ENERGY)
    return _beside(frame, names.with_hidden(NOT_BESIDE), found, OF_ENERGY, "energy")


def _beside(
    frame: pl.DataFrame, names: Columns, found: Changed | None, by: Sequence[str], of: str
) -> tuple[pl.DataFrame, Columns]:
    if found is None:
        st.caption(nothing(time_picker.baseline()))
        return frame, names
    column = f"change_{found.amount.rpartition('_')[2]}"
    rows = found.rows.select(*by, "direction", pl.col("change").alias(column))
    joined = frame.join(rows, on=list(by), how="left", maintain_order="left", nulls_equal=True)
    gone = found.rows.join(frame, on=list(by), how="anti", nulls_equal=True)
    text = f"Changes are against {found.windows.name}. {said_of(found.windows)}"
    if change := float(gone["change"].sum()):
        text += f" Rows that are not in this table: {_signed(change, found.amount)}."
    st.caption(theme.markdown_text(text, len(text)))
    more = {column: f"Change of {of}", "direction": "Direction"}
    return joined, names.with_more(more)


def _signed(change: float, column: str) -> str:
    if column.endswith("_kwh"):
        return f"{units.sign_of(change)}{abs(change):,.1f} kWh"
    return units.signed(change, is_priced=column.endswith("_cost"))
