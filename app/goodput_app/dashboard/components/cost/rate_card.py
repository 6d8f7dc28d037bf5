"""Prices, tariffs and budgets: what holds, since when, where it comes from, how to change it."""

import shlex
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action
from goodput_app.dashboard import price_edit, theme
from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.components.cost.cost_parts import BUDGET_EXAMPLE, in_browser
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import statements
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.process.store import current_store
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_queries.errors import GoodputError

SAID = "prices_said"
ORIGIN = headers("rate_card.origin")
RATES = Columns(headers("rate_card.rates") | ORIGIN)
TARIFFS = Columns(headers("rate_card.tariffs") | ORIGIN)
BUDGETS = Columns(headers("rate_card.budgets") | ORIGIN)
RATE_EXAMPLE = """cluster,gpu_model,partition,qos,price_per_gpu_h,factor,valid_from,note
,H100,,,2.10,,2026-12-01T00:00:00Z,from December on
,,,scavenger,,0.4,,preemptible jobs pay 40 %"""
TARIFF_EXAMPLE = """zone,from_hour,to_hour,price_per_kwh,pue,server_ratio
Europe/Berlin,22,6,0.18,1.3,1.4
Europe/Berlin,6,22,0.26,1.3,1.4"""


def first_price() -> None:
    """Say that nothing has a price yet, and the lines that give one."""
    st.info(
        "No price is known, so this page shows hours only. Ingest a CSV file like this one; the "
        "page then shows costs:",
        icon=":material/payments:",
    )
    st.code(RATE_EXAMPLE, language="text")
    st.code(_command("rates"), language="bash")
    _edit("rates", RATE_EXAMPLE)


def show() -> None:
    """Draw the rate card, tariffs and budgets with their origin, and how each is changed."""
    st.caption(
        "The most specific matching rate applies, then the latest. Factors "
        "multiply. An empty cell matches anything. A closed day keeps the prices it was "
        "charged with."
    )
    if (said := st.session_state.pop(SAID, None)) is not None:
        st.success(said, icon=":material/check:")
    with panel("Rate card", "raw.rates", help="Price of a GPU-hour, for whom, and since when."):
        rates = statements.rates()
        if rates.is_empty():
            first_price()
        else:
            _table(rates, RATES, "rates")
            _change(RATE_EXAMPLE, "rates", "A row with a new `valid_from` ends the one before it.")
    with panel("Electricity", "raw.tariffs", help="Energy counters x tariff x PUE x server / GPU."):
        _card(statements.tariffs(), TARIFFS, "tariffs", TARIFF_EXAMPLE, "No tariff is known.")
    with panel("Budgets and quotas", "raw.budgets", help="Per month; quotas allocate idle time."):
        _card(statements.budget_card(), BUDGETS, "budgets", BUDGET_EXAMPLE, "No budget is set.")
    with panel(
        "Imported",
        "state.ingested",
        help="Price, tariff and budget files that were imported, latest first.",
    ):
        places.table("rate_card.loads", tables.without_folders(statements.price_loads()))
    _policies()


def _card(frame: pl.DataFrame, names: Columns, source: str, example: str, none: str) -> None:
    if frame.is_empty():
        st.info(f"{none} A CSV like this one adds it:", icon=":material/add:")
        st.code(example, language="text")
        st.code(_command(source), language="bash")
        _edit(source, example)
        return
    _table(frame, names, source)
    _change(
        example,
        source,
        "Importing a file again changes nothing; a row with the same key replaces the older one.",
    )


def _table(frame: pl.DataFrame, names: Columns, key: str) -> None:
    wide: dict[str, Any] = {
        name: tables.price_column(names[name])
        for name in ("price_per_gpu_h", "price_per_kwh")
        if name in names
    }
    if "cost_per_month" in names:
        wide["cost_per_month"] = st.column_config.NumberColumn(
            f"{names['cost_per_month']} ({units.currency()})", format=tables.money_format()
        )
    shown = frame.with_columns(
        _validity("valid_from_at", "always").alias("valid_from"),
        _validity("valid_to_at", "open").alias("valid_to"),
        *(
            [pl.col("server_ratio").alias("server_factor")]
            if "server_ratio" in frame.columns
            else []
        ),
    )
    tables.show(in_browser(shown), names.filled(shown), key, rows=10, wide=wide)


def _validity(column: str, none: str) -> pl.Expr:
    """Return an instant as text; `none` stands for a null."""
    return pl.col(column).dt.strftime("%Y-%m-%d %H:%M").fill_null(none)


def _change(example: str, source: str, rule: str) -> None:
    with st.expander("Change or add", icon=":material/edit:"):
        st.markdown(f"Write the lines to a CSV file and ingest it. {rule}")
        st.code(example, language="text")
        st.code(_command(source), language="bash")
        _edit(source, example)


def _edit(source: str, example: str) -> None:
    """Draw what reads lines in from here, where the settings let people do so."""
    if not settings().ui.edit_prices:
        st.caption("To edit prices here, set `edit_prices = true` under `[ui]` in goodput.toml.")
        return
    if not current_identity().may(Action.EDIT_PRICES):
        st.caption("Finance edits prices here; ask an admin for that role.")
        return
    header = example.partition("\n")[0]
    with st.form(f"edit_{source}", border=False):
        text = st.text_area("Lines", value=f"{header}\n", key=f"lines_{source}", height=120)
        if not st.form_submit_button("Imported", icon=":material/input:"):
            return
    try:
        rows = price_edit.read_in(current_store(), source, text)
    except GoodputError as error:
        st.warning(theme.markdown_text(error), icon=":material/error:")
        return
    added = units.count(rows, "row")
    st.session_state[SAID] = f"{added} of {source} imported; figures follow in a few seconds."
    st.rerun()


def _command(source: str) -> str:
    path = str(getattr(current_store(), "path", settings().db))
    return f"goodput ingest {source} {source}.csv --db {shlex.quote(path)}"


def _policies() -> None:
    own = settings().statement
    with panel("Policies", "goodput.toml", help="Settings of the site in goodput.toml."):
        st.code(
            "[statement]\n"
            f'zone = "{own.zone}"\n'
            f'day_starts_at = "{own.day_starts_at}"\n'
            f"lateness_h = {own.lateness_h}\n"
            f'idle_policy = "{own.idle_policy}"  # none, proportional, uniform, by_quota\n'
            f"credit_infra_failures = {str(own.credit_infra_failures).lower()}\n"
            f"charge_inferred = {str(own.charge_inferred).lower()}\n"
            f'currency = "{own.currency}"',
            language="toml",
        )
        st.caption("Restart `goodput serve` after a change. Closed days keep their policy.")
