"""The statement of a day: its rows, what they come to, and what proves them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TypedDict, cast

import polars as pl

from goodput_billing.statement import adjustments, closing
from goodput_billing.statement.account_measures import with_account_measures
from goodput_billing.statement.adjustments import STATUS
from goodput_billing.statement.amounts import currency, ownership
from goodput_billing.statement.amounts.charges import IDLE_LINES, Policy
from goodput_billing.statement.amounts.rows import in_cents
from goodput_billing.statement.amounts.summary import accounts, totals
from goodput_billing.statement.billing_lock import billing_lock
from goodput_billing.statement.budgets import budgets
from goodput_billing.statement.carbon import with_carbon
from goodput_billing.statement.closing import Booking
from goodput_billing.statement.days import Day, day_of
from goodput_billing.statement.other_days import beside
from goodput_billing.statement.refused_days import refuse_other_currencies, refuse_overlap
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.database import Store
from goodput_queries.errors import NoEvidenceError
from goodput_queries.scope import utc_at

LOSSES_SHOWN = 10
DIFFERENCES = "select * from marts.statement_differences order by cluster, reason"
UNMATCHED = "select * from marts.statement_unmatched where gpu_ms > 0 order by cluster, kind"


@dataclass(frozen=True)
class Statement:
    """A day as it is delivered; every frame is in the order in which it is printed.

    rows: what is billed, line by line, in cents; `correction` is 0, or the number of the correction
    that added the row; beside it energy, carbon and tokens as known now. bookings: empty while the
    day is open. closes_ms: what its clusters' evidence has to reach for it to close. was_corrected:
    this very call found late evidence.
    is_proven: it was computed again just now; not so once its readings were dropped by age, or
    where the database is only read from. account: whose it is alone; None: the whole day.
    adjustments: notes, disputes and credits that are listed beside the amounts. known_parts: of the
    days that it is compared with, by name.
    """

    day: Day
    settings: StatementSettings
    policy: Policy
    bookings: list[Booking]
    evidence_ms: int
    closes_ms: int
    was_corrected: bool
    is_proven: bool
    rows: pl.DataFrame
    accounts: pl.DataFrame
    budgets: pl.DataFrame
    losses: pl.DataFrame
    balance: pl.DataFrame
    differences: pl.DataFrame
    unmatched: pl.DataFrame
    account: str | None = None
    adjustments: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATUS))
    known_parts: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Say whether its rows are fixed."""
        return bool(self.bookings)

    @property
    def total_cost(self) -> Decimal:
        """Return what all rows come to."""
        return sum(self.rows["total_cost"].drop_nulls(), Decimal("0.00"))


class _ReadOnly:
    is_read_only = True

    def __init__(self, store: Store) -> None:
        self.read = store.read


def read_only(store: Store) -> Store:
    """Return a store of which a statement can be made without closing or correcting its day."""
    return cast("Store", _ReadOnly(store))  # a statement only reads


def statement(
    store: Store,
    when: date,
    settings: StatementSettings,
    *,
    closes_now: bool = False,
    now: datetime | None = None,
) -> Statement:
    """Return the statement of the day that begins on a date; close it where its time has come.

    A closed day is computed again and corrected for late evidence. A read-only database is
    left as it is: the day stays open in it. closes_now closes a day that has ended, by
    the clock or by the evidence, however far the evidence reaches into it; what comes later is a
    correction. Raises NoEvidenceError for a day without evidence.
    """
    day = day_of(when, settings)
    policy = policy_of(store, day, settings)
    known = closing.evidence(store)
    booked = closing.bookings(store, day)
    if not booked:
        refuse_overlap(store, day)
        refuse_other_currencies(store, day, policy.currency)
    reach = known.reach(set(_clusters(store, day))) or (booked[-1].evidence_ms if booked else None)
    if reach is None:
        raise NoEvidenceError(f"there is no evidence of {when} ({day.zone}){_extent(known)}.")
    closes_ms = day.to_ms + settings.lateness_h * 3_600_000
    now_ms = int((now or datetime.now(UTC)).timestamp() * 1000)
    is_due = reach >= closes_ms or (closes_now and max(reach, now_ms) >= day.to_ms)
    is_proven = was_corrected = False
    if not getattr(store, "is_read_only", False):
        booked, is_proven, was_corrected = _settled(store, day, policy, reach, is_due=is_due)
    rows = _rows(booked) if booked else _open_rows(store, day, policy)
    made_by = booked[0].policy if booked else policy
    days = beside(
        store, when, settings, totals(rows), known,
        lambda day: replace(policy_of(store, day, settings), currency=made_by.currency),
    )  # fmt: skip
    return Statement(
        day=day,
        settings=settings,
        policy=made_by,
        bookings=booked,
        evidence_ms=reach,
        closes_ms=closes_ms,
        was_corrected=was_corrected,
        is_proven=is_proven,
        accounts=accounts(rows, days),
        budgets=budgets(store, day, days.month, settings),
        **as_known(store, day, with_carbon(rows, store, day)),
        adjustments=adjustments.about(store, day, made_by.currency, is_closed=bool(booked)),
        known_parts=days.known_parts,
    )


class AsKnown(TypedDict):
    """The frames of a statement that say what is known now of the time of its rows."""

    rows: pl.DataFrame
    losses: pl.DataFrame
    balance: pl.DataFrame
    differences: pl.DataFrame
    unmatched: pl.DataFrame


def as_known(store: Store, day: Day, rows: pl.DataFrame) -> AsKnown:
    """Return these frames of a day, or from the first to the last of several."""
    return {
        "rows": with_account_measures(rows, store, day),
        "losses": losses(store, day),
        "balance": _balance(store, day, rows),
        "differences": store.read(DIFFERENCES, scope=day.scope, is_kept=True),
        "unmatched": store.read(UNMATCHED, scope=day.scope, is_kept=True),
    }


def _settled(
    store: Store, day: Day, policy: Policy, reach: int, *, is_due: bool
) -> tuple[list[Booking], bool, bool]:
    """Correct a closed day or close one that is due; return its bookings, if proven, if corrected.

    What is booked is read again here: another process may have closed the day since.
    """
    with billing_lock(store):
        booked = closing.bookings(store, day)
        is_proven = closing.is_provable(store, day)
        was_closed = not booked and is_due
        was_corrected = bool(booked) and is_proven and closing.correct(store, day, booked, reach)
        if was_closed:
            refuse_overlap(store, day)
            closing.close(store, day, policy, reach)
        if was_closed or was_corrected:
            booked = closing.bookings(store, day)
        if booked:
            adjustments.give_by_rule(store, day, booked[0].policy, booked[0].rows)
    return booked, is_proven, was_corrected


def rows_as_they_are(
    store: Store, day: Day, settings: StatementSettings
) -> tuple[pl.DataFrame, Policy, bool]:
    """Return the rows of a day in cents, their policy, and whether it is closed; close nothing.

    Raises NoEvidenceError for a day without evidence.
    """
    if booked := closing.bookings(store, day):
        return _rows(booked), booked[0].policy, True
    known = closing.evidence(store)
    if known.reach(set(_clusters(store, day))) is None:
        raise NoEvidenceError(f"there is no statement of {day.date} ({day.zone}){_extent(known)}.")
    policy = policy_of(store, day, settings)
    return _open_rows(store, day, policy), policy, False


def policy_of(store: Store, day: Day, settings: StatementSettings) -> Policy:
    """Return how a day that is not closed yet is charged."""
    return Policy(
        settings.idle_policy,
        settings.credit_infra_failures,
        closing.quotas(store, day),
        settings.currency,
        evaluation_counts=store.read("select evaluation_counts()").item(),
        charge_inferred=settings.charge_inferred,
        credits=settings.credits,
    )


def _rows(booked: list[Booking]) -> pl.DataFrame:
    return pl.concat(
        booking.rows.with_columns(pl.lit(booking.number, pl.Int32).alias("correction"))
        for booking in booked
    )


def _open_rows(store: Store, day: Day, policy: Policy) -> pl.DataFrame:
    smallest = currency.smallest_cents(policy.currency)
    rows = in_cents(closing.computed(store, day, policy), smallest=smallest)
    return rows.with_columns(pl.lit(0, pl.Int32).alias("correction"))


def _clusters(store: Store, day: Day) -> list[str]:
    found = store.read(
        "select distinct cluster from marts.capacity where capacity_ms > 0 order by 1",
        scope=day.scope,
    )
    return found["cluster"].to_list()


def losses(store: Store, day: Day, *, of_each_account: bool = False) -> pl.DataFrame:
    """Return the losses of a day, of all or of each account, highest cost first."""
    return store.read(
        """select cluster, coalesce(team, '') as account, coalesce(run_id, '') as run_id, label,
            coalesce(cause, '') as cause, blame, confidence, gpu_ms, cost, fix
        from marts.loss_causes
        where
            blame in ('own', 'platform')
            -- of an end that nothing explains
            or (
                blame = 'unsettled'
                and category in ('fault_stall', 'lost_work', 'failed_without_progress')
            )
        qualify row_number() over (
            partition by case when $1 then team end
            order by cost desc nulls last, gpu_ms desc, cluster, run_key, category, blame
        ) <= $2
        order by cost desc nulls last, gpu_ms desc, cluster, run_key, category, blame""",
        [of_each_account, LOSSES_SHOWN],
        scope=day.scope,
        is_kept=True,
    )


def _balance(store: Store, day: Day, rows: pl.DataFrame) -> pl.DataFrame:
    """Return, by cluster, what is charged, with ledger, inventory and scheduler beside it."""
    gpu_ms, line = pl.col("gpu_ms"), pl.col("line")
    charged = (
        adjustments.without_credits(rows)
        .group_by("cluster")
        .agg(
            gpu_ms.filter(line.is_in(("usage", ownership.INFERRED))).sum().alias("held_ms"),
            gpu_ms.filter(line == ownership.INFERRED).sum().alias("inferred_ms"),
            gpu_ms.filter(line.is_in(IDLE_LINES)).sum().alias("free_ms"),
            gpu_ms.filter(line == "not_available").sum().alias("not_available_ms"),
            gpu_ms.filter(line != ownership.UNPLACED).sum().alias("statement_ms"),
            gpu_ms.filter(line == ownership.UNPLACED).sum().alias("unplaced_ms"),
        )
    )
    held_against = store.read(
        "select * from marts.statement_balance", scope=day.scope, is_kept=True
    )
    return charged.join(held_against, on="cluster", how="left").sort("cluster")


def _extent(known: closing.Evidence) -> str:
    if not known.as_of_ms:
        return ""
    last = utc_at(max(known.as_of_ms.values()))
    return f"; evidence ends at {last:%Y-%m-%d %H:%MZ}"
