"""Notes, disputes and credits as people write them: checked against the statement, then stored."""

import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from goodput_billing.statement import adjustments
from goodput_billing.statement.amounts import currency
from goodput_billing.statement.amounts.summary import NOBODYS
from goodput_billing.statement.billing_lock import billing_lock
from goodput_billing.statement.days import Day, day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import rows_as_they_are
from goodput_queries.database import Store
from goodput_queries.errors import QueryError
from goodput_queries.scope import utc_at

REASON_MAX_CHARS = 500
NAME_MAX_CHARS = 80
OUTCOMES = ("accepted", "rejected")


@dataclass(frozen=True)
class Target:
    """What is spoken of: an account on the statement of a day, or a part of it.

    user_name, line: None is all. line: a run id, or a kind of line such as `usage`. cluster: None
    where the account is on one cluster only.
    """

    when: date
    account: str
    user_name: str | None = None
    line: str | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class _Found:
    """A target on its statement: the rows of the account, and how the day stands."""

    day: Day
    target: Target
    cluster: str
    of_account: pl.DataFrame
    is_closed: bool
    currency: str

    @property
    def words(self) -> str:
        return _words(self.target.account, self.target.user_name, self.target.line)


def speak(
    store: Store,
    settings: StatementSettings,
    kind: str,
    target: Target,
    *,
    reason: str,
    made_by: str,
) -> str:
    """Store a note or a dispute about a day, open or closed; return its id.

    Raises QueryError where the statement has no such day, account, user or line.
    """
    found = _find(store, settings, target)
    made = _made(found, kind, reason=reason, made_by=made_by)
    _write(store, [made])
    return str(made["adjustment_id"])


def credit(
    store: Store,
    settings: StatementSettings,
    target: Target,
    amount: Decimal,
    *,
    reason: str,
    made_by: str,
    code: str | None = None,
) -> str:
    """Store a credit for a closed day, which the next statement books; return its id.

    code: the currency that the amount is in; None: the statement's. Raises QueryError where the
    day is open, or where the amount is in another currency or above what was billed.
    """
    with billing_lock(store):  # no other credit comes between the check and the row
        found = _find(store, settings, target)
        made = _credit(store, found, amount, code, reason=reason, made_by=made_by)
        _write(store, [made])
    return str(made["adjustment_id"])


def resolve(
    store: Store,
    settings: StatementSettings,
    dispute_id: str,
    outcome: str,
    *,
    reason: str,
    made_by: str,
    amount: Decimal | None = None,
    code: str | None = None,
) -> str:
    """Store what became of a dispute, with a credit where it was accepted; return its id."""
    if outcome not in OUTCOMES:
        raise QueryError(f"{outcome!r} is none of {', '.join(OUTCOMES)}.")
    if amount is not None and outcome != "accepted":
        raise QueryError("only an accepted dispute has a credit.")
    with billing_lock(store):
        row = _open_dispute(store, dispute_id)
        answer = {name: row[name] for name in _ABOUT} | _said("resolved", reason, made_by)
        made = [answer | {"refers_to": dispute_id, "outcome": outcome}]
        if amount is not None:
            target = Target(
                row["day"], row["account"], row["user_name"], row["line"], row["cluster"]
            )
            found = _find(store, settings, target)
            given = _credit(store, found, amount, code, reason=reason, made_by=made_by)
            made.append(given | {"refers_to": dispute_id})
        _write(store, made)
    return str(answer["adjustment_id"])


def _open_dispute(store: Store, dispute_id: str) -> dict[str, Any]:
    """Return a dispute that is not resolved yet; raises QueryError for another id."""
    known = store.read(
        "select * from billing.adjustments where adjustment_id = $1 and kind = 'dispute'",
        [dispute_id],
    )
    if known.is_empty():
        raise QueryError(
            f"there is no dispute {dispute_id!r}; `goodput adjust list` has their ids."
        )
    if not store.read(
        "select 1 from billing.adjustments where kind = 'resolved' and refers_to = $1",
        [dispute_id],
    ).is_empty():
        raise QueryError(f"the dispute {dispute_id} is resolved already.")
    return known.row(0, named=True)


_ABOUT = ("day", "from_at", "to_at", "cluster", "account", "user_name", "line")


def _find(store: Store, settings: StatementSettings, target: Target) -> _Found:
    day = day_of(target.when, settings)
    shown, policy, is_closed = rows_as_they_are(store, day, settings)
    own = adjustments.without_credits(shown).filter(
        ~pl.col("line").is_in(list(NOBODYS)), pl.col("team") == target.account
    )
    if target.cluster is not None:
        own = own.filter(pl.col("cluster") == target.cluster)
    on = f"on the statement of {target.when}"
    if own.is_empty():
        where = "" if target.cluster is None else f" of cluster {target.cluster!r}"
        raise QueryError(f"there is no account {target.account!r}{where} {on}.")
    clusters = sorted(own["cluster"].unique())
    if len(clusters) > 1:
        raise QueryError(
            f"the account {target.account!r} is on the clusters {', '.join(clusters)} {on}: name "
            "one with --cluster."
        )
    if _of(own, target.user_name, target.line).is_empty():
        words = _words(target.account, target.user_name, target.line)
        raise QueryError(f"there is no line of {words} {on}.")
    return _Found(day, target, clusters[0], own, is_closed, policy.currency)


def _of(rows: pl.DataFrame, user_name: str | None, line: str | None) -> pl.DataFrame:
    if user_name is not None:
        rows = rows.filter(pl.col("user_name") == user_name)
    if line is not None:
        rows = rows.filter((pl.col("line") == line) | (pl.col("run_id") == line))
    return rows


def _credit(
    store: Store,
    found: _Found,
    amount: Decimal,
    code: str | None,
    *,
    reason: str,
    made_by: str,
) -> dict[str, Any]:
    when = found.day.date
    if not found.is_closed:
        raise QueryError(f"{when} is still open: a credit is for a closed day.")
    if code is not None and code != found.currency:
        raise QueryError(f"the statement of {when} is in {found.currency}, not in {code}.")
    smallest = Decimal(currency.smallest_cents(found.currency)).scaleb(-2)
    if not amount.is_finite() or amount < smallest or amount % smallest:
        raise QueryError(f"a credit is a multiple of {smallest} {found.currency} above 0.")
    _refuse_more_than_billed(store, found, amount)
    made = _made(found, "credit", reason=reason, made_by=made_by)
    return made | {"amount": amount.quantize(Decimal("0.01")), "currency": found.currency}


def _refuse_more_than_billed(store: Store, found: _Found, amount: Decimal) -> None:
    """Raise QueryError where credits would exceed what was billed: of the lines, or all around."""
    before = store.read(
        """select user_name, line, amount from billing.adjustments
        where kind = 'credit' and to_ms(from_at) = $1 and to_ms(to_at) = $2
            and cluster = $3 and account = $4""",
        [found.day.from_ms, found.day.to_ms, found.cluster, found.target.account],
    )
    user_name, line = found.target.user_name, found.target.line
    for user, kind in {(user_name, line), (user_name, None), (None, line), (None, None)}:
        within = before
        for name, value in (("user_name", user), ("line", kind)):
            within = within if value is None else within.filter(pl.col(name) == value)
        given = sum(within["amount"], Decimal("0.00"))
        known = _of(found.of_account, user, kind)["total_cost"].drop_nulls()
        billed = sum(known, Decimal("0.00"))
        if given + amount > billed:
            already = f", of which {given} is credited already" if given else ""
            raise QueryError(
                f"{_words(found.target.account, user, kind)} was billed {billed} "
                f"{found.currency} on {found.day.date}{already}: a credit of {amount} is more."
            )


def _made(found: _Found, kind: str, *, reason: str, made_by: str) -> dict[str, Any]:
    return {
        **_said(kind, reason, made_by),
        "day": found.day.date,
        "from_at": utc_at(found.day.from_ms),
        "to_at": utc_at(found.day.to_ms),
        "cluster": found.cluster,
        "account": found.target.account,
        "user_name": found.target.user_name,
        "line": found.target.line,
    }


def _said(kind: str, reason: str, made_by: str) -> dict[str, Any]:
    reason, made_by = " ".join(reason.split()), " ".join(made_by.split())
    if not reason or len(reason) > REASON_MAX_CHARS:
        raise QueryError(f"a reason has 1 to {REASON_MAX_CHARS} characters.")
    if not made_by or len(made_by) > NAME_MAX_CHARS:
        raise QueryError(f"a name has 1 to {NAME_MAX_CHARS} characters.")
    return {
        "adjustment_id": secrets.token_hex(6),
        "made_at": datetime.now(UTC).replace(tzinfo=None),
        "made_by": made_by,
        "kind": kind,
        "reason": reason,
    }


def _write(store: Store, made: list[dict[str, Any]]) -> None:
    adjustments.write(store, made, "adjust", str(made[0]["adjustment_id"]))


def _words(account: str, user_name: str | None, line: str | None) -> str:
    parts = [f"account {account!r}"]
    parts += [] if user_name is None else [f"user {user_name!r}"]
    parts += [] if line is None else [f"line {line!r}"]
    return ", ".join(parts)
