"""The statement of one account: its own rows of the whole statement, and nothing of the others.

What belongs to a cluster is omitted (capacity, idle time, what the scheduler counts, digests and
totals of the day); of shared idle time only the account's share is there. What is left is as billed
in the whole statement, to the cent.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from goodput_billing.statement.amounts import rows
from goodput_billing.statement.amounts.summary import NOBODYS
from goodput_billing.statement.closing import Booking
from goodput_billing.statement.statement import Statement, losses
from goodput_queries.database import Store
from goodput_queries.errors import QueryError

NAME_MAX_CHARS = 60


def of_account(store: Store, whole: Statement, account: str) -> Statement:
    """Return what a statement says to one account; raises QueryError for one it does not know."""
    known = whole.accounts.filter("is_account")["account"].to_list()
    if account not in {*known, *whole.budgets["account"]}:
        raise QueryError(
            f"no account {account!r} in the month of {whole.day.date}; see `goodput report` "
            "without --account for those that there are."
        )
    return _only(whole, account, losses(store, whole.day, of_each_account=True))


def each_account(store: Store, whole: Statement) -> Iterator[Statement]:
    """Yield the statement of every account that has rows in the whole one."""
    found = losses(store, whole.day, of_each_account=True)
    for account in _own(whole.rows)["team"].unique().sort():
        yield _only(whole, account, found)


def file_name(account: str) -> str:
    """Return an account's name as a part of a path: the same for no two accounts, harmless."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", account.lower()).strip("-.")[:NAME_MAX_CHARS]
    if plain == account and plain and not re.search("(^|-)[0-9a-f]{8}$", plain):
        return plain
    digest = hashlib.blake2b(account.encode(), digest_size=4).hexdigest()
    return "-".join(part for part in (plain, digest) if part)


def _own(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are billed to accounts: idle time of a reservation is nobody's."""
    return frame.filter(~pl.col("line").is_in(list(NOBODYS)))


def _only(whole: Statement, account: str, found: pl.DataFrame) -> Statement:
    own = _own(whole.rows).filter(pl.col("team") == account)
    policy = replace(
        whole.policy,
        quotas={key: gpus for key, gpus in whole.policy.quotas.items() if key[1] == account},
        credits=(),  # rules name other accounts
    )
    bookings = [_booking(booking, account) for booking in whole.bookings]
    return replace(
        whole,
        account=account,
        policy=policy,
        bookings=[b for b in bookings if b.number == 0 or b.rows.height],
        rows=own,
        accounts=whole.accounts.filter("is_account", pl.col("account") == account),
        budgets=whole.budgets.filter(pl.col("account") == account),
        losses=found.filter(pl.col("account") == account),
        balance=whole.balance.clear(),
        differences=whole.differences.clear(),
        unmatched=_unpriced(own),
        adjustments=whole.adjustments.filter(pl.col("account") == account),
    )


def _booking(booking: Booking, account: str) -> Booking:
    """Return what a booking bills to the account, with a digest of that."""
    billed, exact = (
        _own(frame).filter(pl.col("team") == account) for frame in (booking.rows, booking.exact)
    )
    return replace(booking, rows=billed, exact=exact, digest=rows.digest(billed))


def _unpriced(own: pl.DataFrame) -> pl.DataFrame:
    """Return how much of the account's own time has no price, as `marts.statement_unmatched`."""
    return (
        own.filter(pl.col("price_per_gpu_h").is_null(), pl.col("gpu_ms") != 0)
        .group_by("cluster", maintain_order=True)
        .agg(
            pl.lit("allocated without a price").alias("kind"),
            pl.col("run_key").n_unique().alias("n"),
            pl.col("gpu_ms").sum(),
            pl.lit("Who runs the cluster adds a price; a correction then charges it").alias(
                "what_to_do"
            ),
        )
    )
