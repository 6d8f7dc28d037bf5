"""Notes, disputes and credits: which belong to a statement, and what they add to its rows.

A closed day is never changed by them. A credit is a row of the next day that closes in its
currency; notes and disputes are listed beside the amounts.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from goodput_billing.statement.amounts import currency, rows
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.credit_rules import credits_of, identity
from goodput_billing.statement.amounts.summary import Days, accounts
from goodput_billing.statement.days import Day
from goodput_queries.database import Store
from goodput_queries.evidence.batch import Batch
from goodput_queries.scope import utc_at

KINDS = ("note", "dispute", "resolved", "credit")
BY_RULE = "policy"
SCHEMA: dict[str, pl.DataType] = {
    "adjustment_id": pl.String(),
    "made_at": pl.Datetime("us"),
    "made_by": pl.String(),
    "kind": pl.String(),
    "day": pl.Date(),
    "from_at": pl.Datetime("us"),
    "to_at": pl.Datetime("us"),
    "cluster": pl.String(),
    "account": pl.String(),
    "user_name": pl.String(),
    "line": pl.String(),
    "amount": rows.CENTS,
    "currency": pl.String(),
    "reason": pl.String(),
    "refers_to": pl.String(),
    "outcome": pl.String(),
}
STATUS: dict[str, pl.DataType] = {
    **{name: kind for name, kind in SCHEMA.items() if name not in ("from_at", "to_at")},
    "status": pl.String(),
    "booked_on": pl.Date(),
}
_BOOKED = """select booked.adjustment_id, min(days.day) as booked_on
    from billing.statement_rows as booked
    inner join billing.statement_days as days using (rows_id)
    where booked.adjustment_id is not null
    group by all"""
_ALL = f"""select made.*, coalesce(case made.kind
        when 'dispute' then coalesce(answers.outcome, 'open')
        when 'credit' then if(booked_on is null, 'not booked yet', 'booked')
    end, '') as status, booked_on
    from billing.adjustments as made
    left join ({_BOOKED}) using (adjustment_id)
    left join billing.adjustments as answers
        on answers.kind = 'resolved' and answers.refers_to = made.adjustment_id"""
_ORDER = "order by made.made_at, made.adjustment_id"


def listed(store: Store) -> pl.DataFrame:
    """Return all adjustments with their status, the oldest first: STATUS."""
    return store.read(f"{_ALL} {_ORDER}").select(*STATUS)


def about(store: Store, day: Day, code: str, *, is_closed: bool) -> pl.DataFrame:
    """Return what the statement of a day lists beside its amounts: STATUS.

    That is all about the day itself, notes and open disputes about the day before, and on an open
    day the credits that it books when it closes.
    """
    found = store.read(
        f"""{_ALL}
        where (to_ms(made.from_at) = $1 and to_ms(made.to_at) = $2)
            or (to_ms(made.to_at) = $1
                and (made.kind = 'note' or (made.kind = 'dispute' and answers.outcome is null)))
            or (not $4 and made.kind = 'credit' and booked_on is null
                and made.currency = $3 and to_ms(made.to_at) <= $1)
        {_ORDER}""",
        [day.from_ms, day.to_ms, code, is_closed],
    )
    return found.select(*STATUS)


def pending_rows(store: Store, day: Day, code: str) -> pl.DataFrame:
    """Return the credits that a day books when it closes, as rows in cents: rows.SCHEMA and total.

    They are of days that ended before it began, and on no closed day yet.
    """
    found = store.read(
        f"""{_ALL}
        where made.kind = 'credit' and booked_on is null and made.currency = $1
            and to_ms(made.to_at) <= $2
        {_ORDER}""",
        [code, day.from_ms],
    )
    made = [_row(credit) for credit in found.iter_rows(named=True)]
    billed = pl.DataFrame(made, schema={**rows.SCHEMA, **dict.fromkeys(rows.AMOUNTS, rows.CENTS)})
    return billed.with_columns(pl.col("direct_cost").alias("total_cost"))


def _row(credit: dict[str, Any]) -> dict[str, Any]:
    unknown = ("energy_mj", "measured_ms", "wall_mj")
    return {
        "line": "credit",
        "cluster": credit["cluster"],
        "team": credit["account"],
        "user_name": credit["user_name"],
        **{name: None if name in unknown else 0 for name in rows.QUANTITIES},
        "direct_cost": -credit["amount"],
        "idle_share_cost": Decimal("0.00"),
        "adjustment_id": credit["adjustment_id"],
        "reason": credit["reason"],
        "for_day": credit["day"],
    }


def without_credits(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a statement without credits for other days: what the day itself came to."""
    return frame.filter(pl.col("adjustment_id").is_null())


def write(store: Store, made: Sequence[dict[str, Any]], origin: str, digest: str) -> None:
    """Add adjustments, all or none; those of one digest once."""
    frame = pl.DataFrame(list(made), schema=SCHEMA).with_columns(pl.lit("adjust").alias("source"))
    store.load(Batch("adjustments", frame, "adjust", origin, digest))
    store.build()  # nothing to compute; the database says again that it is up to date


def give_by_rule(store: Store, day: Day, policy: Policy, billed: pl.DataFrame) -> None:
    """Add the credits that the rules of a closed day give for it, once.

    billed: its rows when it closed; corrections do not change a credit.
    """
    digest = f"credits of {day.from_ms}-{day.to_ms}"
    if not policy.credits or _is_written(store, digest):
        return
    smallest = Decimal(currency.smallest_cents(policy.currency)).scaleb(-2)
    own = accounts(without_credits(billed), Days(None, None, []))
    made_at = datetime.now(UTC).replace(tzinfo=None)
    bounds = {name: utc_at(ms) for name, ms in (("from_at", day.from_ms), ("to_at", day.to_ms))}
    made = [
        {
            **credit,
            **bounds,
            "adjustment_id": identity(day.from_ms, day.to_ms, number, *credit.values()),
            "made_at": made_at,
            "made_by": BY_RULE,
            "kind": "credit",
            "day": day.date,
            "currency": policy.currency,
        }
        for number, credit in enumerate(credits_of(own, policy.credits, smallest))
    ]
    if made:
        write(store, made, f"credits of {day.date}", digest)


def _is_written(store: Store, digest: str) -> bool:
    found = store.read(
        "select count(*) from state.ingested where table_name = 'adjustments' and digest = $1",
        [digest],
    )
    return bool(found.item())
