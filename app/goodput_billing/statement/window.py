"""What the statements of several days come to: the numbers of each day's own, added up.

Lines are read by account, since a page needs no users or runs; rounding gives accounts their cents
before it gives them to rows, so that every figure is the one of the day's statement, to the cent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl

from goodput_billing.statement.amounts.charges import Policy, charges
from goodput_billing.statement.amounts.currency import smallest_cents
from goodput_billing.statement.amounts.rows import (
    AMOUNTS,
    KEYS,
    PRICE,
    QUANTITIES,
    frame_of,
    in_cents,
)
from goodput_billing.statement.amounts.summary import (
    SCHEMA,
    UNIT_COSTS,
    Days,
    Totals,
    accounts,
    unit_cost,
)
from goodput_billing.statement.days import HOUR_MS, Day, day_of, month_to
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.database import Store
from goodput_queries.scope import Scope

_OF_ACCOUNT = ("line", "cluster", "team", "gpu_model", "mig_profile", *KEYS[-3:])
_COLUMNS = ", ".join(
    name if name in _OF_ACCOUNT else f"null::varchar as {name}"
    for name in (*KEYS, "run_id", "job_name")
)
_SUMS = ", ".join(f"sum({name})::bigint as {name}" for name in QUANTITIES)
_COMMUNICATION = "sum(communication_ms)::bigint as communication_ms"
_LINES = f"""select {_COLUMNS}, {_SUMS}, {_COMMUNICATION}, sum(metered_mj_price) as metered_mj_price
    from marts.statement_lines group by all order by all"""
_LINES_OF_DAYS = _LINES.replace("select ", "select bucket, ", 1)
_BILLED = ", ".join(
    f"sum({name.replace('_cost', '_billed_cost')})::decimal(18, 2) as {name}" for name in AMOUNTS
)
_COMPARED = ("yesterday_cost", "week_ago_cost", "month_cost")
SUMMED = tuple(
    name for name in SCHEMA if name.endswith(("_ms", "_cost", "_kwh")) and name not in _COMPARED
)


@dataclass(frozen=True)
class Closed:
    """A closed day: its bounds in epoch ms and how many corrections were added to it."""

    from_ms: int
    to_ms: int
    corrections: int


def days_of(from_ms: int, to_ms: int, settings: StatementSettings, *, most: int) -> list[Day]:
    """Return the days that a window touches, whole and in order; of more than `most` the last."""
    zone = settings.zone_info()
    first = (datetime.fromtimestamp(from_ms / 1000, UTC).astimezone(zone) - timedelta(1)).date()
    last = datetime.fromtimestamp(max(from_ms, to_ms - 1) / 1000, UTC).astimezone(zone).date()
    dates = [first + timedelta(n) for n in range((last - first).days + 1)][-most - 1 :]
    days = [day_of(date, settings) for date in dates]
    return [day for day in days if day.from_ms < to_ms and day.to_ms > from_ms][-most:]


def month_of(day: Day, settings: StatementSettings) -> list[Day]:
    """Return the days of the month up to this one."""
    return [day_of(date, settings) for date in month_to(day.date)]


def evidence_bounds(store: Store) -> tuple[int, int]:
    """Return from when to when the ledger goes, in epoch ms; an empty one from 0 to 0."""
    bounds = store.read(
        "select coalesce(min(hour_ms), 0), coalesce(max(hour_ms) + 3600000, 0) "
        "from marts.statement_hourly"
    )
    return bounds.row(0)


def closed_days(store: Store) -> dict[tuple[int, int], Closed]:
    """Return the closed days by their bounds."""
    found = store.read(
        "select to_ms(from_at), to_ms(to_at), max(number) from billing.statement_days group by all"
    )
    return {(row[0], row[1]): Closed(*row) for row in found.rows()}


def lines_of(store: Store, day: Day) -> pl.DataFrame:
    """Return `marts.statement_lines` of a day by account and price: before idle time is shared."""
    return store.read(_LINES, scope=day.scope, is_kept=True)


def lines_of_days(store: Store, days: Sequence[Day]) -> list[pl.DataFrame]:
    """Return the lines of each of these days; those of whole hours and one length in one read."""
    found: list[pl.DataFrame] = []
    for together in _alike(days):
        first, last = together[0], together[-1]
        if first is last:
            found.append(lines_of(store, first))
            continue
        scope = Scope(first.from_ms, last.to_ms, bucket_ms=first.to_ms - first.from_ms)
        rows = store.read(_LINES_OF_DAYS, scope=scope, is_kept=True)
        by_day = rows.partition_by("bucket", as_dict=True)
        found += [by_day.get((n,), rows.clear()).drop("bucket") for n in range(len(together))]
    return found


def _alike(days: Sequence[Day]) -> list[list[Day]]:
    """Return days that follow each other, begin on whole hours and are equally long, together."""
    found: list[list[Day]] = []
    for day in days:
        before = found[-1][-1] if found else None
        is_next = (
            before is not None
            and before.to_ms == day.from_ms
            and before.to_ms - before.from_ms == day.to_ms - day.from_ms
            and day.from_ms % HOUR_MS == 0
        )
        if is_next:
            found[-1].append(day)
        else:
            found.append([day])
    return found


def billed_of(store: Store, closed: Closed) -> pl.DataFrame:
    """Return the accounts of a closed day as billed, corrections included: `summary.SCHEMA`."""
    rows = store.read(
        f"""select {_COLUMNS}, {_SUMS}, {_BILLED},
            sum(kept.billed_cost)::decimal(18, 2) as total_cost
        from billing.statement_days as days
        inner join billing.statement_rows as kept using (rows_id)
        where to_ms(from_at) = $1 and to_ms(to_at) = $2
        group by all order by all""",
        [closed.from_ms, closed.to_ms],
    )
    return accounts(rows, _ALONE)


def computed_of(lines: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Return the accounts of a day under a policy from its lines: `summary.SCHEMA`."""
    exact = frame_of(charges(lines.iter_rows(named=True), policy))
    return accounts(in_cents(exact, smallest=smallest_cents(policy.currency)), _ALONE)


_ALONE = Days(None, None, [])


def totals_of(day: pl.DataFrame) -> Totals:
    """Return what a day came to by (cluster, account)."""
    return {(row[0], row[1]): row[2] for row in day["cluster", "account", "total_cost"].iter_rows()}


def added_up(days: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return accounts of several days as one row each, those that paid most first.

    Columns of `summary.SCHEMA` without the comparisons. An amount is null where no day knows it;
    unit costs are null where a part has no price.
    """
    columns = ["cluster", "account", "is_account", *SUMMED]
    frames = [day.select(columns) for day in days]
    if not frames:
        return pl.DataFrame(schema={name: SCHEMA[name] for name in (*columns, *UNIT_COSTS)})
    known = [
        pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).cast(SCHEMA[name])
        for name in SUMMED
    ]
    summed = pl.concat(frames).group_by("cluster", "account", "is_account").agg(*known)
    unit_costs = [
        pl.Series(name, [unit_cost(row, of) for row in summed.iter_rows(named=True)], PRICE)
        for name, of in UNIT_COSTS.items()
    ]
    return summed.with_columns(unit_costs).sort(
        "is_account", "total_cost", "cluster", "account", descending=[True, True, False, False]
    )


def whole(frame: pl.DataFrame) -> dict[str, object]:
    """Return all accounts of `added_up` (without unallocated time) as one row; empty ones are 0."""
    of_accounts = frame.filter("is_account")
    sums: dict[str, object] = {name: _sum(of_accounts[name]) for name in SUMMED}
    row = {"is_account": True, **sums}
    return row | {name: unit_cost(row, of) for name, of in UNIT_COSTS.items()}


def _sum(series: pl.Series) -> object:
    known: Sequence[Decimal | int] = series.drop_nulls().to_list()
    if not known and len(series):
        return None
    return sum(known, Decimal("0.00")) if series.dtype.is_decimal() else sum(known)
