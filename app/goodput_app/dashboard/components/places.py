"""Links to the pages of a GPU, a node and a run, from whatever table names them, and its facts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from goodput_app.access.rows import sees_all
from goodput_app.dashboard import table_columns, theme, time_zone
from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import metrics
from goodput_app.dashboard.data.search import hour_of
from goodput_app.dashboard.table_columns import Columns
from goodput_app.text import units
from goodput_queries.scope import Scope

UNITS = {  # suffix of a column -> factor, format
    "_w": (1, "{:,.0f} W"),
    "_c": (1, "{:.0f} °C"),
    "_kwh": (1, "{:,.2f} kWh"),
    "_kg": (1, "{:,.2f} kg CO2e"),
    "_hz": (1e-6, "{:,.0f} MHz"),
    "_bytes_per_s": (1e-9, "{:,.1f} GB/s"),
    "_bytes": (1e-9, "{:,.1f} GB"),
}


def gpu_name(index: int | None, uuid: str | None) -> str:
    """Return what a GPU is called on its node."""
    return f"GPU {index}" if index is not None else f"GPU {theme.printable(uuid or '?', 16)}"


def rack_name(rack: str | None) -> str | None:
    """Return what a rack is called in a sentence, None where it is not known."""
    return None if rack is None else f"rack {theme.printable(rack).removeprefix('rack')}"


def _index_of(uuid: str) -> int | None:
    """Return the index of a GPU whose row does not have it, to who may see the inventory."""
    if not sees_all(scope_bar.required_view().scope):
        return None
    known = metrics.gpus(Scope(gpu_uuid=uuid))["gpu_index"].drop_nulls()
    return None if known.is_empty() else int(known[-1])


def links(row: Mapping[str, Any]) -> None:
    """Draw links to the GPU, the node and the run that a row names; no link for what it lacks."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if uuid := row.get("gpu_uuid"):
            index = _index_of(uuid) if row.get("gpu_index") is None else row["gpu_index"]
            to_gpu(uuid, ", ".join(filter(None, (gpu_name(index, uuid), row.get("node")))))
        if node := row.get("node"):
            to_node(node, row.get("cluster"))
        if (run := row.get("run_key")) and (
            name := row.get("run_name") or row.get("job_name") or row.get("run_id")
        ):
            to_run(run, name)  # rows of a run's own page do not name it


def to_page(page: str, label: str, icon: str | None = None, **changes: str | None) -> None:
    """Draw a link to a page with the parameters of this one. changes: None leaves one out."""
    shown = None if icon is None else f":material/{icon}:"
    st.page_link(page, label=label, icon=shown, query_params=scope_bar.carried(**changes))


def close_button(column: DeltaGenerator, param: str) -> None:
    """Draw the button that closes what the parameter of the link opened."""
    column.button(
        "Close", key=f"close_{param}", icon=":material/close:", type="tertiary",
        on_click=scope_bar.go, args=({param: None},),
    )  # fmt: skip


def to_gpu(uuid: str, name: str, *, verb: str = "Open ") -> None:
    """Draw a link to the page of a GPU, with the time range of this page."""
    page, params = name_links.gpu(uuid)
    label = f"{verb}{theme.markdown_text(name)}"
    st.page_link(page, label=label, icon=":material/memory:", query_params=params)


def to_node(
    node: str,
    cluster: str | None,
    times: tuple[datetime, datetime] | None = None,
    *,
    verb: str = "Open node ",
) -> None:
    """Draw a link to the page of a node, with the time range of this page or that (naive UTC)."""
    page, params = name_links.node(node, cluster)
    if times is not None:
        params |= {"from": time_zone.iso(hour_of(times[0])), "to": time_zone.iso(times[1])}
    label = f"{verb}{theme.markdown_text(node, 60)}"
    st.page_link(page, label=label, icon=":material/dns:", query_params=params)


def to_run(run_key: str, name: str) -> None:
    """Draw a link to the page of a run, with the time range of this page."""
    page, params = name_links.run(run_key)
    label = f"Open run {theme.markdown_text(name, 60)}"
    st.page_link(page, label=label, icon=":material/monitoring:", query_params=params)


def facts(row: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Draw what a row has in some columns; names: column -> header, in order."""
    found = [
        f"{header}: {theme.markdown_text(fact(name, row[name]))}"
        for name, header in names.items()
        if row[name] is not None and row[name] != ""
    ]
    if found:
        st.caption(" / ".join(found))


def fact(name: str, value: Any) -> str:
    """Return a value as people read it; the suffix of its column says its unit."""
    if isinstance(value, datetime):
        return time_zone.moment(value)
    if isinstance(value, str) or not isinstance(value, int | float):
        return str(value)
    if name == "cost" or name.endswith("_cost") or name.startswith("cost_per_"):
        return units.cost(value)
    for suffix, (factor, shown) in UNITS.items():
        if name.endswith(suffix):
            return shown.format(value * factor)
    if name.endswith("_ratio"):
        return units.percent(value)
    if name.endswith("_ms"):
        return units.gpu_time(value)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return units.duration(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def ids(frame: pl.DataFrame, of: Sequence[str]) -> pl.Series:
    """Return what identifies each row in a link: its values in some columns."""
    texts = [pl.col(name).cast(pl.String) for name in of]
    return frame.select(id=pl.concat_str(texts, separator="|", ignore_nulls=True)).to_series()


def table(
    name: str,
    frame: pl.DataFrame,
    *,
    key: str | None = None,
    wide: Mapping[str, Any] | None = None,
) -> bool:
    """Draw a table of `tables.toml`, or say what it says without rows; return whether it has some.

    key: another than that of the file
    """
    of = table_columns.table(name)
    if of.says_nothing(frame):
        if of.empty:
            st.caption(of.empty)
        for line in of.lines:
            st.code(line, language=of.language)
        return False
    shown = of.columns_of(frame, table_columns.headers(name))
    if of.id:
        pick(frame, shown, key or of.key, of.id, rows=of.rows, wide=wide)
    else:
        tables.show(frame, shown, key or of.key, rows=of.rows, wide=wide)
    if of.note:
        st.caption(of.note)
    if of.more and (total := frame["total"][0]) > frame.height:
        st.caption(of.more.format(shown=frame.height, total=total))
    return True


def pick(
    frame: pl.DataFrame,
    names: Columns,
    key: str,
    of: Sequence[str],
    *,
    rows: int = tables.ROWS_SHOWN,
    wide: Mapping[str, Any] | None = None,
) -> None:
    """Draw a table whose picked row has its hidden columns, and links to what it names.

    of: the columns that identify a row.
    """
    picked = tables.pick(frame, names, key, ids(frame, of), rows=rows, wide=wide)
    if picked is None:
        st.caption("Select a row for links to its GPU, node and run.")
    else:
        facts(picked, names.details)
        links(picked)
