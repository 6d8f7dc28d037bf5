"""Parts of the run and health pages: why attempts failed, and what led to it."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.data import failures
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope


def of_attempt(scope: Scope, attempt: int | None, key: str = "") -> None:
    """Draw ranked causes and failure chain of an attempt; None: of the last one that failed.

    key: prefix of the tables' keys, where two attempts are on one page
    """
    found = failures.causes(scope)
    if attempt is None and found.is_empty():
        st.caption("No attempt failed in this time range.")
        return
    chosen = pl.col("attempt") == (found["attempt"].max() if attempt is None else attempt)
    causes = found.filter(chosen)
    if causes.is_empty():
        st.caption(f"Attempt {attempt} did not fail in this time range.")
        return
    first = causes.row(0, named=True)
    st.markdown(f"**Attempt {first['attempt']}: {theme.markdown_text(first['cause'])}**")
    lost = "No time was lost to its failure in this time range"
    if first["lost_gpu_ms"]:
        lost = f"Its failure lost {units.gpu_time(first['lost_gpu_ms'])} in this time range"
        if first["lost_cost"] is not None:
            lost += f" ({theme.markdown_text(units.cost(first['lost_cost']))})"
    st.caption(f"{lost}. Ranked by what the evidence proves; the first is the failure reason.")
    of = ("attempt_key", "rank")
    places.pick(causes, headers("failure.causes"), f"{key}cause", of, rows=6)
    chain = failures.chains(scope).filter(chosen)
    st.markdown("**Failure chain**")
    tables.show(chain, headers("failure.chain"), f"{key}failure_chain", rows=15)


def losses(scope: Scope) -> None:
    """Say at which steps the training loss was not finite, or diverged; nothing where none was."""
    for row in failures.loss_anomalies(scope).iter_rows(named=True):
        st.warning(_anomaly(row), icon=":material/trending_up:")


def _anomaly(row: dict[str, Any]) -> str:
    where = f"Attempt {row['attempt']}, step {row['step']:,}, {time_zone.moment(row['step_at'])}"
    ends = "to the end of the attempt" if row["is_lasting"] else "and then recovered"
    if row["kind"] == "diverged":
        return (
            f"{where}: the training loss rose from a median of {row['baseline_loss']:.4g} to "
            f"{row['highest_loss']:.4g} for {row['steps']:,} logged steps, {ends}."
        )
    before = (
        "no finite loss was logged before it"
        if row["last_finite_step"] is None
        else f"last finite loss {row['last_finite_loss']:.4g} at step {row['last_finite_step']:,}"
    )
    return (
        f"{where}: the training loss is NaN or infinite in {row['steps']:,} logged steps, "
        f"{ends}; {before}."
    )
