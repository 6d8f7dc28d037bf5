"""Charts of gaps and of the data itself: pure functions from a frame to a Plotly figure."""

from datetime import datetime

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.figures.ledger import finished, marker
from goodput_app.text import units

CAUSES_SHOWN = 12
CAUSE_PX = 42  # a line of text with a bar below it
HOURS_NAMED = 5  # on an axis, where each has room on a phone, too
BAR_SHARE, BAR_OFFSET = 0.42, 0.02  # of that
LENGTHS: tuple[tuple[str, float], ...] = (
    ("1 - 10 s", 10.0),
    ("10 - 60 s", 60.0),
    ("1 - 10 min", 600.0),
    ("10 - 60 min", 3600.0),
    ("1 - 6 h", 21_600.0),
    ("6 - 24 h", 86_400.0),
    ("> 1 day", float("inf")),
)


def causes(frame: pl.DataFrame) -> go.Figure:
    """Return the causes of the gaps, highest cost first, with the share that they add up to.

    frame: the sums of data.IdleGaps. Ranked by money where all has a price, else by GPU time.
    """
    is_priced = frame.height > 0 and frame["unpriced"].sum() == 0
    sums = (
        frame.group_by("label", "colour")
        .agg(pl.col("gpu_ms", "cost", "gaps").sum())
        .sort("cost" if is_priced else "gpu_ms", "label", descending=[True, False])
    )
    total_ms = int(sums["gpu_ms"].sum())
    total = sums["cost"].sum() if is_priced else total_ms
    unit, divisor = units.gpu_time_unit(total_ms)
    figure = go.Figure()
    running = 0.0
    shown = sums.head(CAUSES_SHOWN)
    for place, row in enumerate(shown.iter_rows(named=True)):
        worth = row["cost"] if is_priced else row["gpu_ms"]
        running += worth
        share = f", {100 * running / total:.0f} % cumulative" if total else ""
        amount = (
            units.cost(row["cost"], beside=sums["cost"]) if is_priced
            else units.gpu_time(row["gpu_ms"])
        )  # fmt: skip
        figure.add_bar(
            y=[theme.plotly_text(row["label"])],
            x=[worth if is_priced else worth / divisor],
            orientation="h",
            marker=marker(row["colour"]),
            width=BAR_SHARE,
            offset=BAR_OFFSET,
            text=[theme.plotly_text(f"{units.count(row['gaps'], 'gap')}{share}")],
            hovertemplate=f"%{{y}}: {units.gpu_time(row['gpu_ms'])}<extra></extra>",
            showlegend=False,
        )
        # above the bar, where also a narrow screen has room for it
        figure.add_annotation(
            x=0, y=place, text=f"{theme.plotly_text(row['label'])}: {theme.plotly_text(amount)}",
            xanchor="left", yanchor="bottom", xshift=-2, showarrow=False,
        )  # fmt: skip
    figure.update_traces(textposition="outside", cliponaxis=False)
    figure.update_layout(barmode="overlay")
    top = max((trace.x[0] for trace in figure.data), default=1)
    figure.update_xaxes(
        title_text=units.currency() if is_priced else f"idle {unit}", range=[0, (top or 1) * 1.75]
    )
    figure.update_yaxes(autorange="reversed", showticklabels=False, showgrid=False)
    return finished(figure, height=shown.height * CAUSE_PX + 80)


def gap_lengths(frame: pl.DataFrame) -> go.Figure:
    """Return how much GPU time lies in gaps of which length, and how many there are.

    frame: the sums of data.IdleGaps; gaps: how many gaps a row stands for.
    """
    sums_ms = [0] * len(LENGTHS)
    counts = [0] * len(LENGTHS)
    for least_s, gpu_ms, gaps in frame.select("least_s", "gpu_ms", "gaps").iter_rows():
        place = next(i for i, (_, limit) in enumerate(LENGTHS) if least_s < limit)
        sums_ms[place] += gpu_ms
        counts[place] += gaps
    used = [i for i, n in enumerate(counts) if n] or [0]
    shown = range(used[0], used[-1] + 1)
    unit, divisor = units.gpu_time_unit(max(sums_ms))
    figure = go.Figure(
        go.Bar(
            x=[LENGTHS[i][0] for i in shown],
            y=[sums_ms[i] / divisor for i in shown],
            text=[f"{counts[i]:,}" if counts[i] else "" for i in shown],
            textposition="outside",
            cliponaxis=False,
            marker={"color": theme.style("idle_held").colour},
            hovertemplate=f"%{{x}}: %{{y:,.2f}} {unit} in %{{text}} gaps<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="gap length; above the bars: count", type="category")
    figure.update_yaxes(title_text=f"idle {unit}", rangemode="tozero")
    return finished(figure, height=260)


def coverage(frame: pl.DataFrame) -> go.Figure:
    """Return which source covered which hour; a cell without an expectation stays grey.

    frame: marts.coverage_by_hour.
    """
    has_one = frame.get_column("cluster").n_unique() == 1
    named = frame.with_columns(
        lane=pl.col("source") if has_one else pl.concat_str("cluster", "source", separator=": ")
    )
    lanes = sorted(named.get_column("lane").unique().to_list(), reverse=True)
    hours: list[datetime] = frame.get_column("hour_at").unique().sort().to_list()
    known = {(r["lane"], r["hour_at"]): r for r in named.iter_rows(named=True)}
    values: list[list[float | None]] = []
    texts: list[list[str]] = []
    for lane in lanes:
        cells = [known.get((lane, hour)) for hour in hours]
        values.append(
            [
                None if c is None or c["coverage_ratio"] is None else c["coverage_ratio"] * 100
                for c in cells
            ]
        )
        texts.append(
            [
                "no data"
                if c is None
                else f"{units.percent(c['coverage_ratio'])} of {c['gpus_expected']} GPUs"
                for c in cells
            ]
        )
    figure = go.Figure(
        go.Heatmap(
            x=time_zone.hours(hours),
            y=[theme.plotly_text(lane) for lane in lanes],
            z=values,
            text=texts,
            zmin=0,
            zmax=100,
            colorscale=theme.HEATMAP_SCALE,
            hovertemplate=f"%{{y}}, %{{x}} {time_zone.name()}: %{{text}}<extra></extra>",
            hoverongaps=False,
            xgap=1,
            ygap=2,
            colorbar={"title": {"text": "% covered", "side": "right"}, "thickness": 10},
            texttemplate="%{text}" if len(hours) <= 4 else "",
        )
    )
    some = slice(None, None, -(-len(hours) // HOURS_NAMED))
    figure.update_xaxes(
        title_text=f"hour ({time_zone.name()})",
        type="category",
        showgrid=False,
        tickvals=time_zone.hours(hours)[some],
        ticktext=_hour_names(hours[some]),
        tickangle=0,
    )
    figure.update_yaxes(automargin=True, showgrid=False)
    figure.update_layout(plot_bgcolor="rgba(141,146,153,0.35)")
    return finished(figure, height=90 + 34 * max(1, len(lanes)))


def _hour_names(hours: list[datetime]) -> list[str]:
    """Return the names of hours on an axis, the first one of a day with its date."""
    shown = [time_zone.local(at) for at in hours]
    days = [None, *(at.date() for at in shown)]
    return [
        f"{at:%H:%M}" if at.date() == day else f"{at:%H:%M<br>%b %d}"
        for at, day in zip(shown, days, strict=False)
    ]
