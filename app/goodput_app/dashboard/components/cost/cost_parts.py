"""What the Cost page says of its days: tiles, budgets, unit costs, files, past statements."""

import itertools
from decimal import Decimal
from functools import partial
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.access import rows
from goodput_app.access.current import carried, current_identity
from goodput_app.access.identity import Action
from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, tables
from goodput_app.dashboard.components.cost import cost_scope
from goodput_app.dashboard.components.cost.cost_scope import Earlier, Shown
from goodput_app.dashboard.components.rows.downloads import button as download_button
from goodput_app.dashboard.data import statements
from goodput_app.dashboard.figures import cost as figures_cost
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import glossary, units
from goodput_app.weekly.like_for_like import EVIDENCE_TOLERANCE, NOT_CERTAIN
from goodput_billing.delivery.archive import PastStatement
from goodput_billing.statement import window
from goodput_queries.errors import GoodputError, NotPermittedError

BUDGETS = headers("cost.budgets")
PAST = headers("cost.past")
FILE_KINDS = {
    "html": ("Web page", "html", "text/html"),
    "pdf": ("PDF", "pdf", "application/pdf"),
    "csv": ("CSV", "csv", "text/csv"),
    "parquet": ("Parquet", "parquet", "application/vnd.apache.parquet"),
    "focus": ("FOCUS 1.2", "csv", "text/csv"),
}
OF_TILES = ("total_cost", "allocated_cost", "own_waste_cost", "platform_waste_cost")
OF_ALL_ROWS = ("total_cost", "electricity_cost")
OF_CELLS = ("total_cost", "allocated_cost", "own_waste_cost", "cost_per_allocated_gpu_h",
            "cost_per_productive_gpu_h", "electricity_cost")  # fmt: skip
OF_USE = ("own_waste_cost", "cost_per_productive_gpu_h")  # by evidence of what was useful
BUDGET_EXAMPLE = "cluster,account,cost_per_month,quota_gpus\n,nlp,120000,64"


def tiles(shown: Shown, before: Earlier | None) -> None:
    """Draw the numbers of the days, each with its denominator and its change.

    before: earlier days to compare with
    """
    frame, row = shown.accounts, window.whole(shown.accounts)
    has_price = bool((frame["unpriced_ms"] < frame["gpu_ms"]).any())
    credited = "credited" if shown.how.settings.credit_infra_failures else "not credited"
    sums = {name: _sum(frame[name]) for name in OF_ALL_ROWS}
    beside: tuple[Any, ...] = (*sums.values(), *(row[name] for name in OF_TILES))

    def _cost(amount: Any) -> str:
        return units.cost(amount, beside=beside)

    of_accounts = _cost(row["total_cost"] if has_price else None)
    cells: tuple[tuple[str, Any, str], ...] = (
        ("Total cost", sums["total_cost"] if has_price else None,
         f"{of_accounts} to accounts" + ("" if before else _last_day(shown))),
        ("Allocated cost", row["allocated_cost"] if has_price else None,
         f"{_gpu_time(row['gpu_ms'])} allocated"),
        ("Team-caused waste", row["own_waste_cost"] if has_price else None,
         f"{_cost(row['platform_waste_cost'] if has_price else None)} caused by "
         f"infrastructure, {credited}"),
        ("Per allocated GPU-h", row["cost_per_allocated_gpu_h"], "total charged to accounts"),
        ("Per useful GPU-h", row["cost_per_productive_gpu_h"],
         f"{_gpu_time(row['productive_ms'])} useful"),
        ("Electricity", sums["electricity_cost"], _energy(frame)),
    )  # fmt: skip
    with st.container(key="tiles"):
        columns = st.columns([1.1, 1, 1.1, 1.2, 1.05, 0.95], gap="small")
    changes = [_change(before, name) for name in OF_CELLS] if before else [""] * len(cells)
    for column, (label, value, second), change in zip(columns, cells, changes, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            none = units.NOT_KNOWN if label == "Electricity" else units.NO_PRICE
            is_price = label.startswith("Per ")  # of an hour: its cents matter
            text = none if value is None else units.cost(value) if is_price else _cost(value)
            st.metric(label, theme.markdown_text(text), help=glossary.hover(label))
            st.caption(theme.markdown_text("; ".join(filter(None, (second, change)))))


def budgets(shown: Shown, team: str | None) -> None:
    """Draw month to date, forecast and budget as of the last day with evidence, of all or one."""
    last = shown.last
    if last is None:
        st.caption("No day with evidence.")
        return
    month = statements.month(last.day, shown.how)
    if team is not None:
        month = month.filter(pl.col("account") == team)
    have = month.filter(pl.col("budget_cost").is_not_null())
    st.caption(
        f"{last.day.date:%B} up to {last.day.date}. Forecast: month to date / covered hours x "
        "hours of the month; none with less than a covered day."
    )
    if have.is_empty():
        st.info(
            "No budget is set. Add one line per budget to a CSV file:",
            icon=":material/account_balance:",
        )
        st.code(BUDGET_EXAMPLE, language="text")
        st.code("goodput ingest budgets budgets.csv", language="bash")
        if month.height:
            columns = BUDGETS.without(["cluster"] if month["cluster"].n_unique() == 1 else [])
            tables.show(in_browser(month), columns, "months", rows=8)
        return
    drawn = figures_cost.most_over_budget(have)
    charts.draw(
        figures_cost.budgets(drawn),
        in_browser(drawn),
        "budgets",
        "Month to date, forecast and budget by account",
    )
    if have.height > drawn.height:
        st.caption(
            f"{have.height - drawn.height:,} more accounts have a budget; see the statement."
        )


def unit_costs(shown: Shown) -> None:
    """Draw the effective cost of an allocated and a useful GPU-hour, account by account."""
    said = shown.accounts.filter(pl.col("cost_per_allocated_gpu_h").is_not_null())
    if said.is_empty():
        st.caption("Unknown: part of the allocated time of each account has no price.")
        return
    drawn = said.head(figures_cost.ACCOUNTS_SHOWN)
    charts.draw(
        figures_cost.unit_costs(drawn),
        in_browser(drawn.select(list(headers("cost.unit_costs")))),
        "unit-costs",
        "Cost per allocated and per useful GPU-hour of each account",
    )


def downloads(shown: Shown) -> None:
    """Offer the files of one day's statement, and of all days as one."""
    days = {str(one.day.date): [one.day] for one in reversed(shown.days) if one.accounts.height}
    if len(days) > 1:
        days |= {f"{min(days)} to {max(days)}": [of_it for (of_it,) in reversed(days.values())]}
    if not days:
        st.caption("No day with evidence.")
        return
    if not _may_download():
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        when = st.selectbox("Statement of", list(days), key="statement_day", width=240)
        seen, account = rows.teams(), None
        if seen is not None:  # of the accounts that have rows on some of these days
            own = [team for team in seen if team in set(shown.accounts["account"])]
            account = st.selectbox("Account", own, key="statement_account", width=180)
        for form, (label, suffix, mime) in FILE_KINDS.items():
            of_what = "focus" if form == "focus" else "statement"
            name = f"{of_what}-{when.replace(' ', '-')}.{suffix}"

            def made(form: str = form) -> bytes:
                how = statements.chosen(None)
                return statements.statement_file(days[when], form, how, account, seen)

            download_button(label, carried(made), name, f"download_{form}", mime)
    st.caption(
        "As billed, as `goodput report` writes it; the choices above do not apply. Viewing does "
        "not close or change a statement."
    )


def _may_download() -> bool:
    """Return whether who asks may download statements; say so where they may not."""
    may = current_identity().may(Action.DOWNLOAD_STATEMENT)
    if not may:
        st.caption("Finance downloads statements; ask an admin for that role.")
    return may


def past() -> None:
    """Draw the index of delivered statements, and offer their files."""
    try:
        found = statements.past_statements()
    except NotPermittedError:
        raise
    except GoodputError as error:
        st.warning(theme.markdown_text(error), icon=":material/folder_off:")
        return
    if not found:
        st.caption(
            "None yet. `goodput report --deliver`, or `goodput serve` with `at` under `[report]` "
            "in goodput.toml, writes each closed day to the folder of statements."
        )
        return
    rows = pl.DataFrame([_past(one) for one in found], infer_schema_length=None)
    tables.show(in_browser(rows), PAST, "past", rows=6)
    by_day = {str(one.date): one for one in found if one.files}
    if not by_day or not _may_download():
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        when = st.selectbox("Files of", list(by_day), key="past_day", width=180)
        for name in by_day[when].files:
            data = carried(partial(statements.past_file, name))
            download_button(theme.printable(name), data, name, f"past_{name}")
    st.caption("From the folder of statements on the server; its index.html links them all.")


def in_browser(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with amounts as the browser's tables take them."""
    return frame.with_columns(pl.selectors.decimal().cast(pl.Float64))


def _past(one: PastStatement) -> dict[str, Any]:
    sent = [d.words for d in one.latest]
    row = {name: getattr(one, name) for name in PAST if name != "sent"}
    row["made_at"] = one.made_at.replace(tzinfo=None)
    return row | {"sent": ", ".join(sent) or None}


def _last_day(shown: Shown) -> str:
    """Return how the last whole day stands against the one before it, where both are shown."""
    for before, day in reversed(list(itertools.pairwise(shown.days))):
        found = cost_scope.beside("the day before", [(day, before)])
        if found.is_whole:
            return f"; {day.day.date:%b %d}: {_change(found, 'total_cost')}"
    return ""


def _change(found: Earlier, name: str) -> str:
    """Return how an amount of all rows changed; empty where there is nothing to compare."""
    now, before = (
        _sum(side[name]) if name in OF_ALL_ROWS else window.whole(side)[name]
        for side in (found.now, found.then)
    )
    if not found.is_whole or not now or not before:
        return ""
    ratio = (now - before) / before  # type: ignore[operator] # two of one type: cost, or time
    said = f"{units.points(float(ratio))} % on {found.name}"
    if name in OF_USE and abs(_unsettled(found.now) - _unsettled(found.then)) > EVIDENCE_TOLERANCE:
        said += f", {NOT_CERTAIN}"
    return said


def _unsettled(accounts: pl.DataFrame) -> float:
    """Return the share of what accounts held that no evidence classifies."""
    row: dict[str, Any] = window.whole(accounts)
    return row["unsettled_ms"] / row["gpu_ms"] if row["gpu_ms"] else 0.0


def _sum(series: pl.Series) -> Decimal | None:
    known = series.drop_nulls().to_list()
    return sum(known, Decimal("0.00")) if known else None


def _gpu_time(gpu_ms: Any) -> str:
    return units.gpu_time(gpu_ms)


def _energy(frame: pl.DataFrame) -> str:
    kwh = _sum(frame["energy_kwh"])
    return "no energy measured" if kwh is None else f"{kwh:,.1f} kWh measured"
