"""A selected loss or gap: cause, confidence, evidence and links."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, places, scope_bar, tables
from goodput_app.dashboard.components.rows import cards
from goodput_app.dashboard.components.runs import run_parts
from goodput_app.dashboard.data import marts
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.text import headline, units
from goodput_queries.scope import Scope, epoch_ms

RUN_PAGE = "pages/one_run.py"
WASTE_PAGE = "pages/idle_gaps.py"
VERDICT_PX, CATEGORY_PX, SPARKLINE_PX = 230, 165, 90
LOSSES = headers("details.losses")
LOSSES_SEEN = 8


def losses(frame: pl.DataFrame) -> None:
    """Draw the table of losses and, beside it, the picked one."""
    ids = frame.select(
        pl.concat_str("cluster", "run_key", "category", "blame", separator="|", ignore_nulls=True)
    ).to_series()
    table, side = _beside(st.query_params.get("loss") in ids.to_list())
    with table, cards.table_of("loss"):
        picked = tables.pick(frame, LOSSES, "loss", ids, rows=LOSSES_SEEN)
    with table:
        cards.draw(frame.head(LOSSES_SEEN), "loss", ids, _loss_card)
    if picked is None or side is None:
        st.caption("Select a row for its evidence and the run or gaps behind it.")
        return
    with side.container(border=True):
        _head(picked["label"], picked["run_name"] or picked["node"], "loss")
        _verdict(picked)
        if picked["fix"]:
            st.markdown(f"**What to do:** {theme.markdown_text(picked['fix'])}")
        if picked["run_key"]:
            _open_run(picked["run_key"])
        if picked["node"]:
            places.to_node(picked["node"], picked["cluster"])
        place = {name: picked[name] for name in ("cluster", "category", "blame")}
        places.to_page(WASTE_PAGE, "Open where it is", "savings", run=picked["run_key"], **place)


def runs(frame: pl.DataFrame, found: pl.DataFrame, names: Columns) -> None:
    """Draw the table of runs and, beside it, the verdict on the picked one.

    found: marts.run_verdicts
    """
    ids = frame.get_column("run_key")
    table, side = _beside(st.query_params.get("verdict") in ids.to_list())
    rows = frame.to_dicts()
    # its cause has a column of its own: with it a line is cut, or pushes others out of sight
    of_finding = found.select("run_key", "cause", verdict="title")
    frame = frame.drop("verdict").join(of_finding, on="run_key", how="left", maintain_order="left")
    wide: dict[str, Any] = {
        "verdict": st.column_config.TextColumn(names["verdict"], width=VERDICT_PX),
        "useful": st.column_config.LineChartColumn(
            names["useful"], y_min=0, y_max=1, width=SPARKLINE_PX,
            help="Share of its GPU time in each hour in which it had GPUs",
        ),
    }  # fmt: skip
    goodput = [headline.of_run(row) for row in rows]
    if any(bound or value == units.NOT_MEASURED for value, bound in goodput):
        texts = [f"{value} ({bound})" if bound else value for value, bound in goodput]
        of_held = pl.Series("goodput_of_held", texts, dtype=pl.String)
        frame = frame.with_columns(of_held)
        shown = {
            name.removesuffix("_ratio") if name == "goodput_of_held_ratio" else name: header
            for name, header in names.items()
        }
        names = Columns(shown, hidden=names.hidden)
    else:
        wide["goodput_of_held_ratio"] = st.column_config.ProgressColumn(
            "Goodput (% of allocated)", min_value=0, max_value=100, format="%.1f"
        )
    with table, cards.table_of("verdict"):
        picked = tables.pick(frame, names, "verdict", ids, wide=wide)
    with table:
        cards.draw(pl.DataFrame(rows[: cards.CARDS_SHOWN]), "verdict", ids, _run_card)
    if picked is None or side is None:
        st.caption("Select a row for the verdict and the run's own page.")
        return
    with side.container(border=True):
        _head(*run_parts.names(picked), "verdict")
        run_parts.of_finding(found.filter(pl.col("run_key") == picked["run_key"]), picked)
        places.facts(picked, names.without(["cause"]).details)  # the finding names it
        _open_run(picked["run_key"])


def _loss_card(row: Mapping[str, Any]) -> None:
    amount = theme.markdown_text(units.cost(row["cost"]))
    st.markdown(f"**{cards.text(row['label'])}**: {amount}, {units.gpu_time(row['gpu_ms'])}")
    if of := " / ".join(cards.text(row[name]) for name in ("run_name", "team") if row[name]):
        st.markdown(of)
    if row["fix"]:
        st.caption(f"What to do: {cards.text(row['fix'])}")


def _run_card(row: Mapping[str, Any]) -> None:
    amount = theme.markdown_text(units.cost(row["wasted_cost"]))
    st.markdown(f"**{cards.text(row['run_name'])}**: {amount} wasted")
    goodput, bound = headline.of_run(row)
    of_run = [f"Goodput {goodput}" + (f" ({bound})" if bound else ""), row["state"], row["team"]]
    st.markdown(cards.text(", ".join(filter(None, of_run))))
    if row["verdict"]:
        st.caption(cards.text(row["verdict"]))


def gaps(frame: pl.DataFrame, names: Mapping[str, str], view: View) -> None:
    """Draw the table of gaps and, beside it, the picked one with what its GPU did around it."""
    ids = frame.get_column("gap_id")
    table, side = _beside(st.query_params.get("gap") in ids.to_list())
    with table:
        label = st.column_config.TextColumn(names["label"], width=CATEGORY_PX)
        picked = tables.pick(frame, names, "gap", ids, wide={"label": label})
    if picked is None or side is None:
        st.caption("Select a row for its evidence and what the GPU did around it.")
        return
    with side.container(border=True):
        gpu = "?" if picked["gpu_index"] is None else picked["gpu_index"]
        _head(f"{units.duration(picked['gap_s'])} idle", f"{picked['node']}, GPU {gpu}", "gap")
        span = time_zone.window(picked["gap_start_at"], picked["gap_end_at"])
        st.markdown(f"{span}, mostly **{theme.markdown_text(picked['label'])}** in the ledger")
        _verdict(picked)
        places.facts(picked, {name: names[name] for name in ["team"]})
        _around(picked, view)
        st.caption(f"GPU UUID {theme.markdown_text(picked['gpu_uuid'])}")
        places.links({**picked, "run_key": None})
        if picked["run_key"]:
            _open_run(picked["run_key"])


def _around(gap: dict[str, Any], view: View) -> None:
    """Draw what the ledger says of the gap's GPU, from before the gap to after it."""
    margin = max(timedelta(seconds=gap["gap_s"]), timedelta(seconds=5))
    start = max(view.start, gap["gap_start_at"] - margin)
    end = min(view.end, gap["gap_end_at"] + margin)
    from_ms, to_ms = epoch_ms(start), epoch_ms(end)
    bucket = scope_bar.bucket_ms(to_ms - from_ms)
    scope = Scope(from_ms=from_ms, to_ms=to_ms, gpu_uuid=gap["gpu_uuid"], bucket_ms=bucket)
    rows = marts.ledger_over_time(scope)
    figure = figures.categories_over_time(
        rows, marts.ledger_by_category(scope), bucket, (start, end), height=300
    )
    for at in (gap["gap_start_at"], gap["gap_end_at"]):
        figure.add_vline(x=at, line={"dash": "dash", "width": 2, "color": theme.MARK_COLOUR})
    charts.draw(figure, rows, "around-gap", "The GPU's categories around the gap; dashed: its ends")


def _open_run(run_key: str) -> None:
    places.to_page(RUN_PAGE, "Open the run", "monitoring", run=run_key)


def _beside(is_open: bool) -> tuple[Any, Any]:
    if not is_open:
        return st.container(), None
    table, side = st.columns([1.5, 1], gap="medium")
    return table, side


def _head(title: str, of: str | None, param: str) -> None:
    left, right = st.columns([5, 1], vertical_alignment="top")
    left.markdown(f"#### {theme.markdown_text(title)}")
    left.caption(theme.markdown_text(of or "no run"))
    places.close_button(right, param)


def _verdict(row: dict[str, Any]) -> None:
    confidence = row["confidence"] or "Not confirmed"
    colour: theme.Badge = theme.CONFIDENCE_COLOURS.get(confidence, "gray")
    with st.container(horizontal=True, gap="small"):
        st.badge(theme.markdown_text(confidence), color=colour)
        st.badge(units.gpu_time(row["gpu_ms"]), color="gray")
        st.badge(units.cost(row["cost"]).replace("$", r"\$"), color="gray")
    st.markdown(f"**Cause:** {theme.markdown_text(row['cause'] or units.NOT_KNOWN)}")
    st.markdown(f"**Evidence:** {theme.markdown_text(row['evidence'] or 'none')}")
