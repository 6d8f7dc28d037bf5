"""What to do first: the three actions that save most money in the time range."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.figures.bars import text_of
from goodput_app.text import units

SHOWN = 3
CENT = 0.005
HEADS = (
    '<div class="gp-heads"><div></div><div>Action, where</div><div>Owner</div>'
    "<div>Saving</div><div>GPU time</div></div>"
)


def draw(fixes: pl.DataFrame) -> None:
    """Draw the first rows of the fix list, each with the way to its findings.

    fixes: rows of marts.fixes, what saves most first
    """
    fixes = fixes.filter(pl.col("back_high_ms") > 0)
    if fixes.is_empty():
        st.caption("Nothing to do in this time range.")
        return
    shown = fixes.head(SHOWN)
    ids = finding_parts.fix_ids(shown)
    heads, all_of_them = st.columns([6, 0.85], vertical_alignment="center")
    heads.html(HEADS)
    with all_of_them, st.container(key="all-actions"):
        places.to_page(finding_parts.PAGE, f"{fixes.height} actions")
    for number, (row, key) in enumerate(zip(shown.iter_rows(named=True), ids, strict=True), 1):
        text, button = st.columns([6, 0.85], vertical_alignment="center")
        text.html(_row(number, row))
        with button:
            places.to_page(finding_parts.PAGE, "Open", fix=key)


def _row(number: int, row: Mapping[str, Any]) -> str:
    open_now = row["open_findings"]
    where = f"{row['target'] or 'the fleet'}"
    if row["findings"] > 1:
        where += f" · {row['findings']:,} findings, of which {open_now:,} open"
    return (
        f'<div class="gp-action"><div>{number}</div>'
        f"<div><b>{text_of(row['what_to_do'])}</b><small>{text_of(where)}</small></div>"
        f"<div>{text_of(row['owner'])}<small>takes {text_of(row['effort'])}</small></div>"
        f"<div>{_saving(row)}</div>"
        f"<div>{units.gpu_time(row['back_ms'])}<small>{text_of(row['confidence'])}</small></div>"
        "</div>"
    )


def _saving(row: Mapping[str, Any]) -> str:
    """Return what an action brings back, as HTML: at most, where it may be nothing."""
    low, best, high = (row[f"back_{name}cost"] for name in ("low_", "", "high_"))
    if low is None or high is None:
        return f"<b>{text_of(units.cost(best))}</b>"
    if high - low < CENT:
        said, bounds = units.cost(best), "measured"
    elif low < CENT and high - best < CENT:
        said, bounds = f"up to {units.cost(high)}", "or nothing"
    else:
        said, bounds = units.cost(best), f"{units.cost(low)} to {units.cost(high)}"
    return f"<b>{text_of(said)}</b><small>{text_of(bounds)}</small>"
