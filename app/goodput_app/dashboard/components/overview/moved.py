"""What moved: the wasted cost of the earlier window, what each group added, and of this range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.figures import bars
from goodput_app.text import units

if TYPE_CHECKING:
    from goodput_app.dashboard.like_for_like import Compared, Windows

COST_PAGE = "pages/cost_statement.py"
TOTAL_COLOUR = "drained"
SHOWN = 5  # groups, the largest change first; the rest is one row


def draw(compared: Compared) -> None:
    """Draw the waterfall; in GPU time where nothing has a price."""
    windows, now, then = compared.windows, compared.now, compared.then
    is_priced = now["wasted_cost"].count() > 0 and then["wasted_cost"].count() > 0
    column = "wasted_cost" if is_priced else "wasted_ms"
    rows = changes(now, then, column)
    before, after = (float(side[column].sum()) for side in (then, now))
    shown = [units.cost(before) if is_priced else units.gpu_time(before)]
    shown += [signed(amount, is_priced=is_priced) for _, amount, _ in rows]
    shown.append(units.cost(after) if is_priced else units.gpu_time(after))
    parts = [bars.Part(label, amount, colour, label) for label, amount, colour in rows]
    first = bars.Part(windows.name.removeprefix("the "), before, TOTAL_COLOUR)
    st.html(bars.steps(first, parts, bars.Part("this range", after, TOTAL_COLOUR), shown))
    st.caption(theme.markdown_text(said_of(windows)))
    label, icon = "Cost of this range", ":material/payments:"
    st.page_link(COST_PAGE, label=label, icon=icon, query_params=scope_bar.carried())


def changes(
    now: pl.DataFrame, then: pl.DataFrame, column: str
) -> list[tuple[str, float, str | None]]:
    """Return label, change and colour of each group whose waste moved, in the order of stacks.

    They add up to the difference of the totals: what follows the SHOWN largest is one row.
    """
    sides = now.select(
        "category", "label", "colour", pl.col(column).fill_null(0).alias("now")
    ).join(
        then.select("category", pl.col(column).fill_null(0).alias("then")),
        on="category",
        how="left",
    )
    rows = [
        (row["label"], float(row["now"] - (row["then"] or 0)), row["colour"])
        for row in sides.iter_rows(named=True)
    ]
    rows = [row for row in rows if row[1]]
    largest = sorted(rows, key=lambda row: -abs(row[1]))[:SHOWN]
    kept = [row for row in rows if row in largest]
    if rest := [row for row in rows if row not in largest]:
        kept.append(("others", sum(amount for _, amount, _ in rest), None))
    return kept


def signed(amount: float, *, is_priced: bool) -> str:
    """Return a change with its sign."""
    size = units.cost(abs(amount)) if is_priced else units.gpu_time(abs(amount))
    return f"{units.sign_of(amount)}{size}"


def said_of(windows: Windows) -> str:
    """Return what is compared, and what is left out and why."""
    said = f"Like for like over {units.duration(windows.common_ms / 1000)} of both windows."
    if windows.left_out:
        said += f" Left out: {', '.join(windows.left_out)}."
    return said
