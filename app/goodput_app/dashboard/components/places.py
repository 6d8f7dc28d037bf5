"""Links to the pages of a GPU, a node and a run, from whatever table names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.components.rows import fields

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

GPU_PAGE = "pages/one_gpu.py"
NODE_PAGE = "pages/nodes_and_one.py"
RUN_PAGE = "pages/one_run.py"


def gpu_name(index: int | None, uuid: str | None) -> str:
    """Return what a GPU is called on its node."""
    return f"GPU {index}" if index is not None else f"GPU {theme.printable(uuid or '?', 16)}"


def links(row: Mapping[str, Any]) -> None:
    """Draw links to the GPU, the node and the run that a row names; no link for what it lacks."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if uuid := row.get("gpu_uuid"):
            to_gpu(uuid, gpu_name(row.get("gpu_index"), uuid))
        if node := row.get("node"):
            to_node(node, row.get("cluster"))
        if (run := row.get("run_key")) and (name := row.get("run_name") or row.get("run_id")):
            to_run(run, name)  # rows of a run's own page do not name it


def to_gpu(uuid: str, name: str, *, verb: str = "Open ") -> None:
    """Draw a link to the page of a GPU, with the time range of this page."""
    params = {**scope_bar.carried(node=None, run=None, team=None), "gpu": uuid}
    label = f"{verb}{theme.markdown_text(name)}"
    st.page_link(GPU_PAGE, label=label, icon=":material/memory:", query_params=params)


def to_node(
    node: str,
    cluster: str | None,
    times: tuple[datetime, datetime] | None = None,
    *,
    verb: str = "Open node ",
) -> None:
    """Draw a link to the page of a node, with the time range of this page or that (naive UTC)."""
    cluster = cluster or st.query_params.get("cluster")
    params = scope_bar.carried(node=node, cluster=cluster, run=None, team=None)
    if times is not None:
        params |= {"from": time_zone.iso(times[0]), "to": time_zone.iso(times[1])}
    label = f"{verb}{theme.markdown_text(node, 60)}"
    st.page_link(NODE_PAGE, label=label, icon=":material/dns:", query_params=params)


def to_run(run_key: str, name: str) -> None:
    """Draw a link to the page of a run, with the time range of this page."""
    params = scope_bar.carried(run=run_key, node=None, team=None)
    label = f"Open run {theme.markdown_text(name, 60)}"
    st.page_link(RUN_PAGE, label=label, icon=":material/monitoring:", query_params=params)


def pick(
    frame: pl.DataFrame,
    names: Mapping[str, str],
    key: str,
    of: Sequence[str],
    *,
    rows: int = tables.ROWS_SHOWN,
    widths: Mapping[str, int] | None = None,
    more: Collection[str] = (),
) -> None:
    """Draw a table whose picked row has links to what it names, and the columns left out.

    of: the columns that identify a row. more: see `tables.pick`
    """
    ids = frame.select(
        pl.concat_str(
            [pl.col(name).cast(pl.String) for name in of], separator="|", ignore_nulls=True
        )
    ).to_series()
    picked = tables.pick(frame, names, key, ids, rows=rows, widths=widths, more=more)
    if picked is None:
        rest = "more about it and " if more else ""
        st.caption(f"Select a row for {rest}links to its GPU, node and run.")
    else:
        fields.draw(picked, names, [name for name in names if name in more])
        links(picked)
