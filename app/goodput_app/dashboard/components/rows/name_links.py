"""Names in tables that open the page of what they name by one click."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar

NODE_PAGE = "pages/nodes_and_one.py"
RUN_PAGE = "pages/one_run.py"
GPU_PAGE = "pages/one_gpu.py"
GOING = "going_to"  # of the session: the page that a click asked for, and its parameters
OF_NODE, OF_RUN, OF_GPU = ("node",), ("run_key",), ("gpu_uuid",)
# columns with names, and the columns that say what they are of, the first that has a value
NAMES = {
    "node": OF_NODE,
    "run_name": OF_RUN,
    "job_name": OF_RUN,
    "run_name_before": ("run_before",),
    "best_run_name": ("best_run_key",),
    "last_run_name": ("last_run_key",),
    "gpu_name": OF_GPU,
    "subject": (*OF_NODE, *OF_RUN),
}
MISSING = "-"
HINT = "a click or Enter on a name opens its page"

Target = tuple[str, dict[str, str]]


def node(name: str, cluster: str | None) -> Target:
    """Return the page of a node with the time range of this page."""
    cluster = cluster or st.query_params.get("cluster")
    return NODE_PAGE, scope_bar.carried(node=name, cluster=cluster, run=None, team=None)


def run(run_key: str) -> Target:
    """Return the page of a run with the time range of this page."""
    return RUN_PAGE, scope_bar.carried(run=run_key, node=None, team=None)


def gpu(uuid: str) -> Target:
    """Return the page of a GPU with the time range of this page."""
    return GPU_PAGE, {**scope_bar.carried(node=None, run=None, team=None), "gpu": uuid}


def target(column: str, row: Mapping[str, Any]) -> Target | None:
    """Return the page that a name of a row opens; None where the row does not say whose it is."""
    for of in NAMES[column]:
        if value := row.get(of):
            if of == "node":
                return node(value, row.get("cluster"))
            return gpu(value) if of == "gpu_uuid" else run(value)
    return None


def columns(frame: pl.DataFrame) -> list[str]:
    """Return the columns of a table whose names open a page."""
    return [
        name
        for name, of in NAMES.items()
        if frame.schema.get(name) == pl.String
        and any(one in frame.columns and frame[one].count() for one in of)
    ]


def column(of: Mapping[str, Any], name: str, key: str, frame: pl.DataFrame) -> Any:
    """Return the configuration of a column of names that open their pages.

    of: its configuration as a text; key: of the table; frame: its rows
    """

    def clicked(row: int) -> None:
        st.session_state[GOING] = target(name, frame.row(row, named=True))

    return button(of, f"open_{key}_{name}", clicked)


def button(of: Mapping[str, Any], key: str, clicked: Callable[[int], None]) -> Any:
    """Return the configuration of a column of texts that can be clicked; clicked: with the row."""
    return st.column_config.ButtonColumn(
        of["label"],
        type="tertiary",
        alignment="left",
        width=of["width"],
        help=of["help"],
        key=key,
        on_click=lambda: clicked(st.session_state[key].row),
    )


def plain(series: pl.Series) -> pl.Series:
    """Return names as a button shows them: none is read as an icon, and a missing one is named."""
    return pl.Series(
        series.name,
        [
            v.replace(":material", f":{theme.WORD_JOINER}material") if v else MISSING
            for v in series.to_list()
        ],
        dtype=pl.String,
    )


def go() -> None:
    """Open the page that a click on a name asked for; called before a page is drawn."""
    if (asked := st.session_state.pop(GOING, None)) is not None:
        st.switch_page(asked[0], query_params=asked[1])
