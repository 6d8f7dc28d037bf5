"""Notes, disputes and credits on the Cost page: who sees which, and who may write them."""

from decimal import Decimal, InvalidOperation

import polars as pl

from goodput_app.access import audit, rows
from goodput_app.access.identity import Action
from goodput_app.settings import settings
from goodput_billing.adjustments import record
from goodput_billing.adjustments.record import Target
from goodput_billing.statement import adjustments
from goodput_queries.database import Store
from goodput_queries.errors import NotPermittedError, QueryError

LINE_OF = {"": "account", "user": "user_name", "run": "line"}  # of a row grouped by that


def listed(store: Store) -> pl.DataFrame:
    """Return adjustments with their status, the latest first: of the accounts that the reader sees.

    Columns of `adjustments.STATUS`; status says of a resolution what it decided.
    """
    found = adjustments.listed(store).reverse()
    own = rows.teams()
    if own is not None:
        found = found.filter(pl.col("account").is_in(list(own)))
    return found.with_columns(
        pl.when(pl.col("kind") == "resolved").then("outcome").otherwise("status").alias("status")
    )


def words(found: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return what there is about each row of a statement grouped by account, user or run.

    Columns cluster, label and adjustments, such as "1 open dispute, 2 notes"; no row where there
    is none. A row of an account counts what is about a part of it, too.
    """
    spoken = found.filter(pl.col("kind") != "resolved").with_columns(
        pl.when(pl.col("status") == "open")
        .then(pl.lit("open dispute"))
        .otherwise("kind")
        .alias("kind"),
        pl.col(LINE_OF[by]).alias("label"),
    )
    counted = spoken.drop_nulls("label").group_by("cluster", "label", "kind").len()
    kind, count = pl.col("kind"), pl.col("len")
    text = pl.format(
        "{} {}{}", count, kind, pl.when(count > 1).then(pl.lit("s")).otherwise(pl.lit(""))
    )
    return (
        counted.sort(
            "cluster", "label", kind == "open dispute", kind, descending=[False, False, True, False]
        )
        .with_columns(text.alias("adjustments"))
        .group_by("cluster", "label", maintain_order=True)
        .agg(pl.col("adjustments").str.join(", "))
    )


def speak(store: Store, kind: str, target: Target, reason: str) -> str:
    """Store a note or a dispute and return its id; see `record.speak`.

    Raises NotAllowedError for somebody without the role.
    """
    with audit.acting(store, Action.WRITE_NOTE, _subject(kind, target)) as who:
        _require_own(target.account)
        return record.speak(store, settings().statement, kind, target, reason=reason, made_by=who)


def credit(store: Store, target: Target, amount: str, reason: str) -> str:
    """Store a credit for a closed day and return its id; see `record.credit`.

    Raises NotAllowedError for somebody without the role.
    """
    with audit.acting(store, Action.GIVE_CREDIT, _subject(f"credit of {amount}", target)) as who:
        _require_own(target.account)
        return record.credit(
            store, settings().statement, target, _amount(amount), reason=reason, made_by=who
        )


def resolve(store: Store, dispute_id: str, outcome: str, amount: str, reason: str) -> str:
    """Store what became of a dispute and return the id of that; see `record.resolve`.

    amount: of a credit; empty: none. Raises NotAllowedError for somebody without the role.
    """
    subject = f"dispute {dispute_id} {outcome}" + (f", credit of {amount}" if amount else "")
    with audit.acting(store, Action.GIVE_CREDIT, subject) as who:
        about = listed(store).filter(adjustment_id=dispute_id)
        _require_own(None if about.is_empty() else about["account"].item())
        return record.resolve(
            store,
            settings().statement,
            dispute_id,
            outcome,
            reason=reason,
            made_by=who,
            amount=_amount(amount) if amount else None,
        )


def _require_own(account: str | None) -> None:
    own = rows.teams()
    if own is not None and account not in own:
        raise NotPermittedError("You see the rows of your teams only; name one of their accounts.")


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise QueryError(f"{text!r} is not an amount; expected like 12.50.") from error


def _subject(what: str, target: Target) -> str:
    parts = [f"{what}: {target.when}, account {target.account}"]
    parts += [
        f"{name} {of}" for name, of in (("user", target.user_name), ("line", target.line)) if of
    ]
    return ", ".join(parts)
