"""Which runs the page of runs shows: of a user, in a state; one click shows those of the reader."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.data import marts
from goodput_queries.scope import Scope

USER, STATE = "user", "run_state"
NO_STATE = "not known"


def chosen(scope: Scope) -> tuple[pl.DataFrame, Scope]:
    """Draw the filters; return the runs that they leave and the scope of their user.

    The runs are rows of marts.runs. A user is a filter of the scope, which the rest of the page
    reads; the state of the last attempt chooses among the runs.
    """
    every = marts.runs(scope)
    user, state = st.query_params.get(USER), st.query_params.get(STATE)
    if every.is_empty() and user is None:
        return every, scope
    own = scope if user is None else replace(scope, user=user)
    runs = (every if user is None else marts.runs(own)).with_columns(
        pl.col("state").fill_null(NO_STATE)
    )
    left, middle, right, _ = st.columns([1, 1, 1, 2], vertical_alignment="bottom")
    with left:
        scope_bar.choice(USER, "User", _counted(every["user_name"]), "All users", is_named=False)
    with middle:
        scope_bar.choice(STATE, "State", _counted(runs["state"]), "All states", is_named=False)
    name = current_identity().name
    if name != user and name in every["user_name"]:
        right.button("My runs", key="my_runs", on_click=scope_bar.go, args=({USER: name},))
    if state is not None:
        runs = runs.filter(pl.col("state") == state)
    return runs, own


def _counted(values: pl.Series) -> dict[str, str]:
    """Return the values with the number of runs, the most frequent first."""
    counts = values.filter(values != "").value_counts(sort=True)
    return {value: f"{theme.printable(value)} ({n:,})" for value, n in counts.iter_rows()}
