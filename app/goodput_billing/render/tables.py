"""The tables of a statement in the order of reading: money first, then what proves it."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl

from goodput_billing.render.adjustments_table import adjustments
from goodput_billing.render.use_tables import energy, executing_idle, served, tokens
from goodput_billing.render.wording import (
    NONE,
    UNKNOWN,
    Money,
    Table,
    account_name,
    amounts,
    change,
    hours,
    hours_that_add_up,
    price,
    table,
)
from goodput_billing.statement.amounts import ownership
from goodput_billing.statement.amounts.rows import AMOUNTS, OF_ADJUSTMENTS
from goodput_billing.statement.amounts.summary import BUCKETS, NOBODYS, account_of
from goodput_billing.statement.several_days import SeveralDays
from goodput_billing.statement.statement import Statement
from goodput_queries.scope import utc_at


def tables(statement: Statement, *, lines: int) -> list[Table]:
    """Return all tables, empty ones too; of the statement's lines at most so many."""
    return [
        _accounts(statement),
        _comparison(statement),
        _month(statement),
        _losses(statement),
        energy(statement),
        executing_idle(statement),
        tokens(statement),
        served(statement),
        _corrections(statement),
        adjustments(statement),
        _lines(statement, lines),
        _balance(statement),
        _differences(statement),
        _unmatched(statement),
    ]


def tables_of_days(several: SeveralDays, *, lines: int) -> list[Table]:
    """Return the tables of several days: what they come to, then day by day; lines by run."""
    whole = several.whole
    return [
        _accounts(whole),
        _each_day(several),
        _month(replace(several.days[-1], budgets=whole.budgets)),
        _losses(whole),
        energy(whole),
        executing_idle(whole),
        tokens(whole),
        served(whole),
        adjustments(whole),
        _lines(replace(whole, rows=_by_run(whole.rows)), lines),
        _balance(whole),
        _differences(whole),
        _unmatched(whole),
    ]


def _each_day(several: SeveralDays) -> Table:
    money, rows = amounts(several.whole.policy.currency), several.whole.rows
    of_days = [rows.filter(pl.col("day") == one.day.date) for one in several.days]
    allocated = _adding_up([_held(of_day, "gpu_ms") for of_day in of_days])
    useful = _adding_up([_held(of_day, "productive_ms") for of_day in of_days])
    costs = [_sum(of_it, "total_cost", money) for of_it in (*of_days, rows)]
    days = [str(one.day.date) for one in several.days]
    found = zip(
        [*days, "Total"], allocated, useful, costs, [*map(_state, several.days), ""], strict=True
    )
    *each_day, total = map(list, found)
    return table("each_day", several.whole, each_day, total)


def _held(rows: pl.DataFrame, name: str) -> int:
    return int(rows.filter(pl.col("line").is_in(ownership.HELD_LINES))[name].sum())


def _state(day: Statement) -> str:
    if not day.is_closed:
        return "open"
    corrections = len(day.bookings) - 1
    return f"closed, corrections: {corrections}" if corrections else "closed"


def _by_run(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of several days as one for each run, user, kind of GPU and price."""
    keys = ("line", "cluster", "team", "user_name", "run_id", "partition", "gpu_model")
    amounts = pl.col(*AMOUNTS, "total_cost")
    return rows.group_by(
        *keys, "mig_profile", "price_per_gpu_h", "correction", *OF_ADJUSTMENTS, maintain_order=True
    ).agg(
        pl.col("gpu_ms").sum(),
        pl.when(amounts.is_not_null().any()).then(amounts.sum()),
    )


def _accounts(statement: Statement) -> Table:
    money = amounts(statement.policy.currency)
    names = [*(f"{name}_cost" for name in BUCKETS), "allocated_cost", "idle_share_cost"]
    names += ["electricity_cost", "credit_cost", "total_cost"]
    frame = statement.accounts.filter(
        pl.col("gpu_ms").cast(pl.Boolean) | (pl.col("total_cost") != 0)
    )
    *times, whole = _adding_up(frame["gpu_ms"].to_list())
    rows = [
        [
            account_name(statement, row),
            time,
            *(
                NONE if name.removesuffix("_cost") in BUCKETS and not row["is_account"]
                else money(row[name], _why_not(row))
                for name in names
            ),
            money(row["cost_per_allocated_gpu_h"]),
            money(row["cost_per_productive_gpu_h"]),
        ]
        for row, time in zip(frame.iter_rows(named=True), times, strict=True)
    ]  # fmt: skip
    sums = [sum(frame[name].drop_nulls(), Decimal("0.00")) for name in names]
    if frame["electricity_cost"].null_count() == frame.height:
        sums[names.index("electricity_cost")] = None
    total = ["Total", whole, *(money(cost, UNKNOWN) for cost in sums), "", ""]
    title = "Accounts" if statement.account is None else "What it comes to"
    return table("accounts", statement, rows, total if frame.height > 1 else None, title=title)


def _why_not(row: dict[str, Any]) -> str:
    """Return what stands for a missing amount: energy of reserved GPUs is among the idle's."""
    return NONE if row["account"] == NOBODYS["reserved_idle"] else UNKNOWN


def _comparison(statement: Statement) -> Table:
    money = amounts(statement.policy.currency)
    frame = statement.accounts
    rows = [
        [
            account_name(statement, row),
            money(row["total_cost"]),
            money(row["yesterday_cost"], "no data"),
            change(row["total_cost"], row["yesterday_cost"]),
            money(row["week_ago_cost"], "no data"),
            change(row["total_cost"], row["week_ago_cost"]),
        ]
        for row in frame.iter_rows(named=True)
    ]
    sums = [
        None if frame[name].null_count() else sum(frame[name], Decimal("0.00"))
        for name in ("yesterday_cost", "week_ago_cost")
    ]
    now = statement.total_cost
    of_others = ((money(before, "no data"), change(now, before)) for before in sums)
    total = ["Total", money(now), *(text for texts in of_others for text in texts)]
    note = " ".join(
        f"{name} is known for {float(part) * 100:.0f} % of its hours."
        for name, part in statement.known_parts.items()
        if part < 1
    )
    return table("comparison", statement, rows, total if frame.height > 1 else None, note=note)


def _month(statement: Statement) -> Table:
    money = amounts(statement.policy.currency)
    rows = [
        [
            row["account"],
            row["cluster"] or "all",
            money(row["month_cost"]),
            money(row["forecast_cost"]),
            _between(row, money),
            f"{row['covered_h']:,.1f}",
            money(row["budget_cost"], "no budget"),
            NONE if row["spent_ratio"] is None else f"{row['spent_ratio'] * 100:.1f} %",
            NONE if row["budget_cost"] is None or row["forecast_cost"] is None
            else "over" if row["forecast_cost"] > row["budget_cost"] else "within",
        ]
        for row in _stated_once(statement.budgets).iter_rows(named=True)
    ]  # fmt: skip
    return table("month", statement, rows)


def _between(row: dict[str, Any], money: Money) -> str:
    low, high = row["forecast_low_cost"], row["forecast_high_cost"]
    return NONE if low is None else f"{money(low)} to {money(high)}"


def _stated_once(budgets: pl.DataFrame) -> pl.DataFrame:
    """Omit the row of all clusters where the budget of one cluster equals it."""
    of_one = pl.col("cluster").is_not_null() & pl.col("month_cost").is_not_null()
    repeated = budgets.filter(of_one).select("account", "month_cost").unique()
    of_all = budgets.filter(pl.col("cluster").is_null(), pl.col("budget_cost").is_null())
    again = of_all.join(repeated, on=["account", "month_cost"], how="semi").select(
        "account", "cluster"
    )
    return budgets.join(again, on=["account", "cluster"], how="anti", nulls_equal=True)


def _losses(statement: Statement) -> Table:
    money = amounts(statement.policy.currency)
    texts = ("account", "run_id", "label", "cause", "blame", "confidence")
    rows = [
        [
            *(row[name] or NONE for name in texts), hours(row["gpu_ms"]),
            money(row["cost"], "no price"), row["fix"] or NONE,
        ]
        for row in statement.losses.iter_rows(named=True)
    ]  # fmt: skip
    return table("losses", statement, rows)


def _corrections(statement: Statement) -> Table:
    money = amounts(statement.policy.currency)
    rows = [
        [
            str(booking.number),
            f"{utc_at(booking.evidence_ms):%Y-%m-%d %H:%M} UTC",
            str(booking.rows.height),
            money(Decimal(booking.billed_cents).scaleb(-2)),
            booking.digest,
        ]
        for booking in statement.bookings[1:]
    ]
    return table("corrections", statement, rows)


def _lines(statement: Statement, limit: int) -> Table:
    ranked = statement.rows.sort(
        "total_cost", descending=True, nulls_last=True, maintain_order=True
    )
    shown, rest = ranked.head(limit), ranked.slice(limit)
    *times, of_rest, whole = _adding_up([*shown["gpu_ms"], int(rest["gpu_ms"].sum())])
    money = amounts(statement.policy.currency)
    rows = [
        _line(row, time, money)
        for row, time in zip(shown.iter_rows(named=True), times, strict=True)
    ]
    if rest.height:
        rows.append([
            f"{rest.height:,} more lines", *[""] * 6, of_rest,
            *(_sum(rest, name, money) for name in AMOUNTS),
            _sum(rest, "total_cost", money),
        ])  # fmt: skip
    sums = [_sum(ranked, name, money) for name in (*AMOUNTS, "total_cost")]
    return table("lines", statement, rows, ["Total", *[""] * 6, whole, *sums])


def _line(row: dict[str, Any], gpu_h: str, money: Money) -> list[str]:
    words = {"credit": " (credit)", "idle_share": " (idle share)"}
    mark = f" (correction {row['correction']})" if row["correction"] else ""
    if row["adjustment_id"] is not None:
        mark = f" (credit for {row['for_day']}: {row['reason']})"
        words = {"credit": ""}
    cost = row["price_per_gpu_h"]
    texts = ("user_name", "run_id", "partition", "gpu_model", "mig_profile")
    return [
        f"{account_of(row)}{words.get(row['line']) or ownership.words_of(row)}{mark}",
        *(row[name] or NONE for name in texts),
        price(cost) if cost is not None else NONE if row["adjustment_id"] else "no price",
        NONE if row["line"] == "credit" else gpu_h,
        money(row["direct_cost"], "no price"),
        money(row["idle_share_cost"]),
        money(row["electricity_cost"], UNKNOWN),
        money(row["total_cost"], "no price"),
    ]


def _adding_up(gpu_ms: list[int]) -> list[str]:
    """Return GPU-hours as they are printed, and their sum as the last: they add up."""
    found = hours_that_add_up(gpu_ms)
    return [*found, *hours_that_add_up([sum(gpu_ms)])]


def _sum(rows: pl.DataFrame, name: str, money: Money) -> str:
    known = rows[name].drop_nulls()
    return money(
        sum(known, Decimal("0.00")) if known.len() or name != "electricity_cost" else None, UNKNOWN
    )


def _balance(statement: Statement) -> Table:
    rows = []
    for row in statement.balance.iter_rows(named=True):
        held = row["held_ms"] - row["inferred_ms"]
        parts = [held, row["inferred_ms"], row["free_ms"], row["not_available_ms"]]
        of_scheduler = row["scheduler_held_ms"]
        rows.append([
            row["cluster"], *_adding_up(parts),
            *hours_that_add_up([row["capacity_ms"] or 0]),
            _ms_apart(row["statement_ms"], row["ledger_ms"]),
            NONE if of_scheduler is None else hours_that_add_up([of_scheduler])[0],
            _ms_apart(held, of_scheduler),
            hours_that_add_up([row["unplaced_ms"]])[0],
        ])  # fmt: skip
    return table("balance", statement, rows)


def _ms_apart(ours: int, theirs: int | None) -> str:
    return NONE if theirs is None else f"{ours - theirs:,} ms"


def _differences(statement: Statement) -> Table:
    rows = [
        [row["cluster"], row["reason"], f"{row['job_runs']:,}", hours(row["gpu_ms"]),
         f"{row['gpu_ms']:,} ms"]
        for row in statement.differences.iter_rows(named=True)
    ]  # fmt: skip
    return table("differences", statement, rows)


def _unmatched(statement: Statement) -> Table:
    rows = [
        [row["cluster"], row["kind"], f"{row['n']:,}", hours(row["gpu_ms"]), row["what_to_do"]]
        for row in statement.unmatched.iter_rows(named=True)
    ]
    return table("unmatched", statement, rows)
