"""Charts of money: pure functions from a frame to a Plotly figure.

Frames have the columns of `statement.summary.SCHEMA`; amounts are Decimal. What an account pays is
drawn as the parts of theme.MONEY, which add up to its total.
"""

from collections.abc import Iterable
from datetime import date
from typing import Any

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import PATTERN, ROW_PX, finished
from goodput_app.text import units
from goodput_billing.statement.amounts.currency import PRICE_DECIMALS
from goodput_billing.statement.amounts.summary import NOBODYS

ACCOUNTS_SHOWN = 15
DAYS_NAMED = 10  # on an axis, where each has room
BUDGET_MARK = {"symbol": "line-ns-open", "size": 22, "line": {"width": 3}}
_AMOUNTS = (*theme.MONEY, "total_cost")


def parts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return cluster, account, is_account, the columns of theme.MONEY and their sum, total_cost."""
    is_away = ~pl.col("is_account") & (pl.col("account") == NOBODYS["not_available"])
    nobodys = pl.when("is_account").then(0).otherwise(pl.col("allocated_cost"))
    return frame.select(
        "cluster",
        "account",
        "is_account",
        *(name for name in theme.MONEY if name in frame.columns and name != "electricity_cost"),
        (pl.col("idle_share_cost") + pl.when(is_away).then(0).otherwise(nobodys)).alias(
            "idle_cost"
        ),
        pl.when(is_away).then(nobodys).otherwise(0).alias("not_available_cost"),
        pl.col("electricity_cost").fill_null(0),  # not known is not in any total either
        "total_cost",
    )


def highest(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the accounts with the highest cost as they are drawn, the others as one row.

    frame: `statement.window.added_up`. Columns: label, those of theme.MONEY, total_cost.
    """
    money = _labelled(parts(frame)).filter(pl.col("total_cost") != 0).select("label", *_AMOUNTS)
    money = money.sort("total_cost", descending=True, maintain_order=True)
    if money.height <= ACCOUNTS_SHOWN:
        return money
    rest = money[ACCOUNTS_SHOWN - 1 :]
    sums = rest.select(pl.lit(f"{rest.height:,} others").alias("label"), pl.col(_AMOUNTS).sum())
    return pl.concat([money[: ACCOUNTS_SHOWN - 1], sums])


def by_account(shown: pl.DataFrame) -> go.Figure:
    """Return who pays what for what: a bar an account. shown: `highest`."""
    figure = go.Figure()
    labels = [theme.plotly_text(label) for label in shown["label"]]
    for column in _used(shown):
        figure.add_bar(y=labels, x=_floats(shown[column]), orientation="h", **_look(column, "x"))
    totals = _floats(shown["total_cost"])
    ends = [sum(max(0.0, float(row[n])) for n in theme.MONEY) for row in shown.to_dicts()]
    _write_beside(figure, labels, ends, [units.cost(total, beside=totals) for total in totals])
    figure.update_layout(barmode="relative")
    figure.update_xaxes(title_text=units.currency(), range=_wide(totals, 1.25))
    figure.update_yaxes(autorange="reversed", automargin=True)
    return finished(figure, height=max(1, shown.height) * (ROW_PX + 6) + 130, has_legend=True)


def each_day(days: Iterable[tuple[date, pl.DataFrame]]) -> pl.DataFrame:
    """Return a row a day: day, the columns of theme.MONEY, total_cost."""
    sums = [parts(frame).select(pl.lit(day).alias("day"), pl.col(_AMOUNTS).sum())
            for day, frame in days if not frame.is_empty()]  # fmt: skip
    return pl.concat(sums).sort("day")


def by_day(sums: pl.DataFrame, height: int = 320) -> go.Figure:
    """Return what each day cost and for what. sums: `each_day`."""
    figure = go.Figure()
    days = [f"{day:%Y-%m-%d}" for day in sums["day"]]
    for column in _used(sums):
        figure.add_bar(x=days, y=_floats(sums[column]), **_look(column, "y"))
    figure.update_layout(barmode="relative", bargap=0.25)
    some = sums["day"].gather_every(-(-sums.height // DAYS_NAMED))
    figure.update_xaxes(
        title_text="day of the statement",
        type="category",
        tickvals=[f"{day:%Y-%m-%d}" for day in some],
        ticktext=[f"{day:%b %d}" for day in some],
    )
    figure.update_yaxes(title_text=f"{units.currency()} a day")
    return finished(figure, height=height, has_legend=True)


def most_over_budget(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the accounts that will have spent most of their budget.

    frame: `statement.budgets.SCHEMA`, rows with a budget.
    """
    share = pl.col("forecast_cost").cast(pl.Float64) / pl.col("budget_cost").cast(pl.Float64)
    ranked = frame.sort(share, descending=True, nulls_last=True, maintain_order=True)
    return ranked.head(ACCOUNTS_SHOWN)


def budgets(frame: pl.DataFrame) -> go.Figure:
    """Return the month to date, its forecast and the budget of each account: `most_over_budget`."""
    rows = frame.to_dicts()
    labels = [theme.plotly_text(_account(row["account"], row["cluster"])) for row in rows]
    over = [(row["forecast_cost"] or 0) > row["budget_cost"] for row in rows]
    own, red = theme.style("productive").colour, theme.style("fault").colour
    free = theme.style("free").colour
    sign, decimals = units.currency_sign(), units.money_decimals()
    figure = go.Figure()
    figure.add_bar(
        y=labels,
        x=[float(row["month_cost"]) for row in rows],
        orientation="h",
        name="Month to date",
        marker={"color": own},
        hovertemplate=f"%{{y}}: {sign}%{{x:,.{decimals}f}} so far<extra></extra>",
    )
    figure.add_bar(
        y=labels,
        x=[float(max(0, (row["forecast_cost"] or 0) - row["month_cost"])) for row in rows],
        base=[float(row["month_cost"]) for row in rows],
        orientation="h",
        name="Forecast (red: over budget)",
        marker={
            "color": [red if is_over else free for is_over in over],
            "opacity": 0.55,
            "pattern": {**PATTERN, "shape": "/"},
        },
        customdata=[float(row["forecast_cost"] or 0) for row in rows],
        hovertemplate=f"%{{y}}: {sign}%{{customdata:,.{decimals}f}} by its end<extra></extra>",
    )
    figure.add_scatter(
        y=labels,
        x=[float(row["budget_cost"]) for row in rows],
        mode="markers",
        name="Budget",
        marker={**BUDGET_MARK, "color": theme.CAPACITY_COLOUR},
        hovertemplate=f"%{{y}}: budget {sign}%{{x:,.{decimals}f}}<extra></extra>",
    )
    ends = [float(max(row["forecast_cost"] or 0, row["budget_cost"])) for row in rows]
    _write_beside(figure, labels, ends, [_against(row) for row in rows])
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(
        title_text=f"{units.currency()} a month (% of budget)", range=_wide(ends, 1.6)
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return finished(figure, height=len(rows) * (ROW_PX + 10) + 120, has_legend=True)


def _write_beside(figure: go.Figure, rows: list[str], ends: list[float], texts: list[str]) -> None:
    """Write a text behind the end of each bar."""
    figure.add_scatter(
        y=rows,
        x=ends,
        mode="text",
        text=[f"\u00a0\u00a0{theme.plotly_text(text)}" for text in texts],
        textposition="middle right",
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def unit_costs(rows: pl.DataFrame) -> go.Figure:
    """Return the effective cost of an allocated and a useful GPU-hour, by account.

    rows: `statement.window.added_up`, accounts whose unit costs can be said.
    """
    labels = [theme.plotly_text(label) for label in _labelled(rows)["label"]]
    held = _floats(rows["cost_per_allocated_gpu_h"])
    price = units.money_decimals() + PRICE_DECIMALS
    useful = rows["cost_per_productive_gpu_h"].cast(pl.Float64).to_list()
    figure = go.Figure()
    for label, left, right in zip(labels, held, useful, strict=True):
        if right is not None:
            line = {"width": 2, "color": theme.BASELINE_COLOUR}
            figure.add_scatter(
                y=[label, label], x=[left, right], mode="lines", line=line, hoverinfo="skip",
                showlegend=False,
            )  # fmt: skip
    for name, values, key, symbol, place in (
        ("per allocated GPU-h", held, "free", "circle", "middle left"),
        ("per useful GPU-h", useful, "productive", "diamond", "middle right"),
    ):
        figure.add_scatter(
            y=labels,
            x=values,
            mode="markers+text",
            name=name,
            text=[
                "" if v is None else f"\u00a0\u00a0{theme.plotly_text(units.cost(v))}\u00a0\u00a0"
                for v in values
            ],
            textposition=place,
            marker={"size": 11, "symbol": symbol, "color": theme.style(key).colour},
            hovertemplate=f"%{{y}}: {units.currency_sign()}%{{x:,.{price}f}} {name}<extra></extra>",
            cliponaxis=False,
        )
    figure.update_xaxes(
        title_text=f"{units.currency()} a GPU-hour",
        range=_wide([v for v in (*held, *useful) if v], 1.2),
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return finished(figure, height=max(1, rows.height) * (ROW_PX + 10) + 120, has_legend=True)


def _labelled(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with what each row is called: the cluster only where there are several."""
    has_one = frame["cluster"].n_unique() <= 1
    names = frame.select("account", "cluster").iter_rows()
    labels = [_account(account, None if has_one else cluster) for account, cluster in names]
    return frame.with_columns(pl.Series("label", labels, pl.String))


def _account(account: str, cluster: str | None) -> str:
    name = account or "(no account)"
    return name if cluster is None else f"{name} ({cluster})"


def _against(row: dict[str, Any]) -> str:
    """Return the forecast, and how many percent of the budget it is."""
    if not row["budget_cost"] or row["forecast_cost"] is None:
        return units.cost(row["forecast_cost"])
    share = float(row["forecast_cost"] / row["budget_cost"])
    return f"{units.cost(row['forecast_cost'])} ({share * 100:,.0f} %)"


def _used(frame: pl.DataFrame) -> list[str]:
    return [name for name in theme.MONEY if (frame[name] != 0).any()]


def _look(column: str, axis: str) -> dict[str, Any]:
    label, look = theme.MONEY[column]
    return {
        "name": label,
        "marker": {
            "color": look.colour,
            "pattern": {**PATTERN, "shape": look.hatch} if look.hatch else {"shape": ""},
            "line": {"width": 0},
        },
        "hovertemplate": (
            f"{label}: {units.currency_sign()}%{{{axis}:,.{units.money_decimals()}f}}"
            "<extra></extra>"
        ),
    }


def _floats(series: pl.Series) -> list[float]:
    return series.cast(pl.Float64).fill_null(0.0).to_list()


def _wide(values: Iterable[float], factor: float) -> list[float]:
    """Return an axis with room for the words at the ends of the bars."""
    known = list(values)
    return [min(0.0, *known, 0.0), (max(known, default=0.0) or 1.0) * factor]
