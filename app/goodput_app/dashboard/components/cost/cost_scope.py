"""Which days and accounts the Cost page speaks of, and what its figures rest on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import polars as pl
import streamlit as st

from goodput_app.access import rows
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar, tables, time_picker
from goodput_app.dashboard.data import marts, statements
from goodput_app.dashboard.data.statements import Chosen, DayCost
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_app.weekly.like_for_like import DAY_MS, shifts
from goodput_billing.statement import window
from goodput_billing.statement.amounts.charges import IDLE_POLICIES
from goodput_billing.statement.days import Day, day_of
from goodput_queries.scope import Scope, epoch_ms

SECTIONS = {"": "Statement", "prices": "Prices", "what-if": "What if"}
IDLE_LABELS = headers("cost_scope.idle_labels")
UNPRICED = headers("cost_scope.unpriced")


@dataclass(frozen=True)
class Shown:
    """What the page shows: its days with those accounts that are in scope, added up, and how.

    of_window: how many days the window touches, `days` being all of them or the one chosen.
    """

    how: Chosen
    days: list[DayCost]
    accounts: pl.DataFrame
    of_window: int

    @property
    def last(self) -> DayCost | None:
        """Return the last day with evidence."""
        return next((day for day in reversed(self.days) if not day.accounts.is_empty()), None)


def section() -> str:
    """Draw the switch between the parts of the page and return the one that the URL names."""
    return scope_bar.switch("part", "Part of the page", SECTIONS)


def chosen(view: View) -> Shown:
    """Draw the filters of statements and return what they leave."""
    own = IDLE_LABELS[statements.chosen(None).settings.idle_policy]
    month, idle, billing_day, note = st.columns([1.9, 1.4, 1.1, 1.8], vertical_alignment="bottom")
    with month:
        time_picker.presets("Month", time_picker.MONTHS, "cost_month", scope_bar.go)
    if rows.sees_all(view.scope):
        with idle:
            scope_bar.choice("idle", "Idle cost allocation", IDLE_LABELS, none=f"As billed: {own}")
    asked = st.query_params.get("idle")
    how = statements.chosen(asked if asked in IDLE_POLICIES else None)
    of_window = statements.days(view.scope, how)
    names = {str(day.date): str(day.date) for day in reversed(of_window)}
    with billing_day:
        scope_bar.choice("day", "Billing day", names, none=f"All ({len(of_window)})")
    one = [day for day in of_window if str(day.date) == st.query_params.get("day")]
    wanted = one or of_window
    with note:
        _note(wanted, how)
    with st.spinner("Computing the statements of these days", show_time=True):
        days = in_scope(statements.costs(wanted, how), view.scope)
        accounts = window.added_up([day.accounts for day in days])
    return Shown(how, days, accounts, len(of_window))


def in_scope(days: Sequence[DayCost], scope: Scope) -> list[DayCost]:
    """Return the days with the accounts of a cluster and team alone, where the scope names them."""
    found = []
    for day in days:
        rows = day.accounts
        if scope.cluster is not None:
            rows = rows.filter(pl.col("cluster") == scope.cluster)
        if scope.team is not None:
            rows = rows.filter("is_account", pl.col("account") == scope.team)
        found.append(DayCost(day.day, day.closed, rows))
    return found


@dataclass(frozen=True)
class Earlier:
    """Accounts of days and of earlier ones, added up over the clusters that are whole in both.

    name: of the earlier days; days: how many are compared; is_whole: none is, and all are added up
    """

    name: str
    now: pl.DataFrame
    then: pl.DataFrame
    days: int

    @property
    def is_whole(self) -> bool:
        """Say whether any day can be compared."""
        return self.days > 0


def earlier(view: View, shown: Shown) -> Earlier | None:
    """Return the days beside those that the time range compares with; one day beside another.

    Where the time range leaves it open, one day is beside the day before it, and more are alone.
    """
    baseline = time_picker.baseline()
    if baseline.name == "none" or (baseline.is_automatic and len(shown.days) != 1):
        return None
    of = shown.days[0].day.scope if len(shown.days) == 1 else view.scope
    chosen_by = baseline if baseline.is_chosen else replace(baseline, name="window")
    shift_ms, name = next(shifts(of.from_ms or 0, of.to_ms or 0, chosen_by))
    shift = timedelta(days=max(1, round(shift_ms / DAY_MS)))
    if chosen_by.name == "window":
        name = "the day before" if shift.days == 1 else f"the {shift.days} days before"
    before = [day_of(day.day.date - shift, shown.how.settings) for day in shown.days]
    then = in_scope(statements.costs(before, shown.how), view.scope)
    return beside(name, list(zip(shown.days, then, strict=True)))


def beside(name: str, pairs: Sequence[tuple[DayCost, DayCost]]) -> Earlier:
    """Return days, each beside an earlier one, of the clusters that have evidence of all of both.

    Where none is whole in both, all are added up and there are no days to compare.
    """
    found = []
    for pair in pairs:
        whole = [cluster for cluster in _whole(pair[1].day) if cluster in _whole(pair[0].day)]
        cut = [of.accounts.filter(pl.col("cluster").is_in(whole)) for of in pair]
        if not any(one.is_empty() for one in cut):
            found.append(cut)
    sides = found or [[of.accounts for of in pair] for pair in pairs]
    now, then = (window.added_up([side[n] for side in sides]) for n in (0, 1))
    return Earlier(name, now, then, len(found))


def compared(before: Earlier | None, days: int) -> None:
    """Say what is compared, where the time range names earlier days."""
    if before is None or not time_picker.baseline().is_chosen:
        return
    if before.days == 0:
        st.caption(f"No day is compared with {before.name}: none is whole in both.")
        return
    text = f"Compared with {before.name}: {before.days} of {units.count(days, 'day')}"
    text += ", of the clusters that have all of both"
    st.caption(theme.markdown_text(f"{text}."))


def _whole(day: Day) -> list[str]:
    """Return the clusters with evidence from the begin of a day to its end."""
    ends = marts.clusters().select("cluster", pl.col("first_at", "as_of_at").dt.epoch("ms"))
    is_whole = (pl.col("first_at") <= day.from_ms) & (day.to_ms <= pl.col("as_of_at"))
    return ends.filter(is_whole)["cluster"].to_list()


def nothing(view: View, shown: Shown) -> None:
    """Say why there is no statement to show, and offer the way out."""
    filters = {k: v for k, v in view.filters.items() if k in ("cluster", "team")}
    if filters and any(
        not day.accounts.is_empty()
        for day in statements.costs([day.day for day in shown.days], shown.how)
    ):
        named = ", ".join(f"{k} {theme.markdown_text(v)}" for k, v in filters.items())
        st.info(f"No cost on these days matches the filters ({named}).",
                icon=":material/filter_alt:")  # fmt: skip
        st.button("Clear filters", key="cost_clear", on_click=scope_bar.clear_filters)
        return
    st.info("These days have no evidence.", icon=":material/hourglass_empty:")
    if st.query_params.get("day"):
        st.button(
            "Show all days", key="cost_all_days", on_click=scope_bar.go, args=({"day": None},)
        )


def states(view: View, shown: Shown) -> None:
    """Say what the figures rest on: which filters do not apply, what is open, what has no price."""
    ignored = [name for name in ("node", "run") if getattr(view.scope, name)]
    if ignored:
        st.info(
            f"Statements are by account: the filter {' and '.join(ignored)} does not apply here.",
            icon=":material/filter_alt_off:",
        )
    closed = [day.closed for day in shown.days if day.closed]
    corrections = sum(one.corrections for one in closed)
    words = f"{len(closed)} of {units.count(len(shown.days), 'day')} closed"
    if corrections:
        words += f", {units.count(corrections, 'correction')}"
    if len(closed) < len(shown.days):
        words += "; figures of open days may still change"
    last = shown.days[-1].day
    if last.to_ms > epoch_ms(view.as_of):
        words += f"; of {last.date} there is evidence up to {time_zone.moment(view.as_of)}"
    if shown.how.idle is not None:
        words += ". View only: what is billed stays as the settings say"
    st.caption(f"{words}.")
    unpriced_ms = int(shown.accounts["unpriced_ms"].sum())
    if unpriced_ms and statements.has_rates():
        _unpriced(view, unpriced_ms)
    _electricity(shown.accounts)


def _note(wanted: Sequence[Day], how: Chosen) -> None:
    first, last = wanted[0].date, wanted[-1].date
    span = f"{first}" if first == last else f"{first} to {last}"
    zone = theme.markdown_text(how.settings.zone)
    st.caption(
        f"Whole days, {span}, from {how.settings.day_starts_at} in {zone}: the figures of "
        "`goodput report`. Idle cost allocation moves cost between lines; the total is the same."
    )


def _unpriced(view: View, unpriced_ms: int) -> None:
    st.warning(
        f"{units.gpu_time(unpriced_ms)} have no price and are not included in any amount. Add "
        "their price under Prices.",
        icon=":material/money_off:",
    )
    with st.expander("GPU models and jobs without a price", icon=":material/table:"):
        tables.show(statements.unpriced(view.scope), UNPRICED, "unpriced", rows=6)


def _electricity(accounts: pl.DataFrame) -> None:
    if accounts["energy_kwh"].null_count() == accounts.height:
        st.caption("Electricity is unknown: no energy counter and no power was read.")
    elif accounts["electricity_cost"].null_count() == accounts.height:
        st.caption(
            "Electricity is not included: energy is known, but no tariff. The line "
            "that adds one is under Prices."
        )
