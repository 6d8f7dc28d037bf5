"""Charts of two sides: what moved the goodput, and step time and speed on one axis."""

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import PAGE_PX, ROW_PX, finished, marker
from goodput_app.text import units

SHOWN_MIN = 0.0005  # of allocated time: a smaller change is 0.0 points
ROWS_MAX = 14
COLOURS = (theme.BASELINE_COLOUR, theme.style("free_demand").colour)


def delta_waterfall(ledger: pl.DataFrame) -> go.Figure:
    """Return the goodput of A, what each category took from it or gave back, and that of B.

    ledger: as `Comparison` has it; shares of allocated time
    """
    useful = ledger.filter(ledger["kind"] == "goodput")
    others = ledger.filter(
        (ledger["kind"] != "goodput") & (ledger["change_ratio"].abs() >= SHOWN_MIN)
    )
    begin, end = (float(useful[name].sum()) for name in ("a_ratio", "b_ratio"))
    figure = go.Figure()
    figure.add_trace(_total("Goodput of A", begin))
    left = begin
    for row in others.head(ROWS_MAX).iter_rows(named=True):
        change = -row["change_ratio"]  # more of a loss is less goodput
        figure.add_bar(
            y=[theme.plotly_text(row["label"])],
            x=[change * 100],
            base=[left * 100],
            orientation="h",
            marker=marker(row["colour"]),
            text=[f"{change * 100:+.1f}"],
            customdata=[[units.percent(row["a_ratio"]), units.percent(row["b_ratio"])]],
            hovertemplate=(
                "<b>%{y}</b>: %{customdata[0]} of A, %{customdata[1]} of B<extra></extra>"
            ),
        )
        left += change
    if abs(rest := end - left) >= SHOWN_MIN:
        figure.add_bar(
            y=["Other categories"],
            x=[rest * 100],
            base=[left * 100],
            orientation="h",
            marker={"color": theme.CAPACITY_COLOUR},
            text=[f"{rest * 100:+.1f}"],
            hovertemplate="<b>Other categories</b>: %{x:+.1f} points<extra></extra>",
        )
    figure.add_trace(_total("Goodput of B", end))
    figure.update_traces(textposition="outside", cliponaxis=False, constraintext="none")
    figure.update_layout(barmode="overlay", showlegend=False)
    figure.update_xaxes(title_text="% of allocated time", range=[0, 112])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return finished(figure, height=max(170, (len(figure.data) + 2) * ROW_PX))


def _total(name: str, ratio: float) -> go.Bar:
    return go.Bar(
        y=[name],
        x=[ratio * 100],
        orientation="h",
        marker={"color": theme.style("productive").colour},
        text=[f"{ratio * 100:.1f} %"],
        hovertemplate=f"<b>{name}</b>: %{{x:.1f}} % of allocated time<extra></extra>",
    )


def on_one_axis(frame: pl.DataFrame, column: str, axis: str, position: str) -> go.Figure:
    """Return a measure of both sides on one axis.

    frame: rows of `aligned`; column: `step_{}_s` or `speed_{}`; axis, position: titles of axes
    """
    figure = go.Figure()
    for side, colour in zip("ab", COLOURS, strict=True):
        figure.add_scatter(
            x=frame["position"].to_list(),
            y=frame[column.format(side)].to_list(),
            mode="lines",
            line={"width": 1.6, "color": colour, "dash": "dot" if side == "a" else "solid"},
            name=side.upper(),
            connectgaps=False,
            hovertemplate=f"{side.upper()}: %{{y:,.4g}}<extra></extra>",
        )
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(title_text=position)
    figure.update_yaxes(title_text=axis)  # not from 0: a few per cent are what is looked for
    return finished(figure, height=280, has_legend=True, width_px=PAGE_PX)
