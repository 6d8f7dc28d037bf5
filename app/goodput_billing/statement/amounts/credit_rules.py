"""Credits by rule: `[[statement.credits]]` in goodput.toml, and what they give back of a day."""

import hashlib
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Any

import msgspec
import polars as pl

from goodput_messages.checks import refuse_others
from goodput_queries.errors import GoodputError

OF = {"infrastructure": "platform_waste_cost", "all": "total_cost"}
REASON_MAX_CHARS = 500


class CreditRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of what a closed day cost an account, credited on the next statement.

    of: of the infrastructure-caused waste, or of all that the day cost. share: which part of it, 0
    to 1. min_cost: of an account and cluster; a smaller cost is not credited. accounts: only of
    these; empty: of all.
    """

    reason: str
    of: str = "infrastructure"
    share: float = 1.0
    min_cost: float = 0.0
    accounts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.reason.strip() or len(self.reason) > REASON_MAX_CHARS:
            raise GoodputError(
                f"'statement.credits.reason' has {len(self.reason)} characters, expected 1 to "
                f"{REASON_MAX_CHARS}: it is printed on the statement."
            )
        refuse_others("statement.credits.of", [self.of], tuple(OF))
        if not 0 < self.share <= 1:
            raise GoodputError(
                f"'statement.credits.share' is {self.share}, expected above 0 and at most 1."
            )
        if not 0 <= self.min_cost < float("inf"):
            raise GoodputError(
                f"'statement.credits.min_cost' is {self.min_cost}, expected 0 or more."
            )


def refuse_twice(rules: Sequence[CreditRule], *, credits_infra_failures: bool) -> None:
    """Raise GoodputError where two settings could give the same cost back."""
    if rules and credits_infra_failures:
        raise GoodputError(
            "'statement.credit_infra_failures' and '[[statement.credits]]' would give back the "
            "same cost: keep one of them."
        )
    shares: dict[str, Decimal] = {}
    named = {account for rule in rules for account in rule.accounts}
    for rule in rules:
        for account in rule.accounts or ("", *named):
            shares[account] = shares.get(account, Decimal(0)) + Decimal(str(rule.share))
    for account, share in shares.items():
        if share > 1:
            whom = repr(account) if account else "an account"
            raise GoodputError(
                f"the shares of '[[statement.credits]]' for {whom} "
                f"add up to {share}: more than its cost."
            )


def credits_of(
    accounts: pl.DataFrame, rules: Sequence[CreditRule], smallest: Decimal
) -> Iterator[dict[str, Any]]:
    """Yield cluster, account, amount and reason of what rules give back of a day.

    accounts: of the day as it was billed when it closed. Amounts are rounded down to `smallest`.
    """
    for rule in rules:
        for row in accounts.filter("is_account").iter_rows(named=True):
            cost = row[OF[rule.of]]
            if rule.accounts and row["account"] not in rule.accounts:
                continue
            if cost <= 0 or cost < Decimal(str(rule.min_cost)):
                continue
            units = (cost * Decimal(str(rule.share)) / smallest).to_integral_value(ROUND_DOWN)
            if units:
                yield {
                    "cluster": row["cluster"],
                    "account": row["account"],
                    "amount": units * smallest,
                    "reason": " ".join(rule.reason.split()),
                }


def identity(*parts: object) -> str:
    """Return the id of a credit by rule: the same whenever it is computed again."""
    text = "\x1f".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def as_json(rules: Sequence[CreditRule]) -> list[dict[str, Any]]:
    """Return rules as the policy of a closed day keeps them."""
    return [dict(msgspec.to_builtins(rule)) for rule in rules]


def from_json(fields: Sequence[dict[str, Any]]) -> tuple[CreditRule, ...]:
    """Return the rules of a closed day's policy."""
    return msgspec.convert(fields, tuple[CreditRule, ...])
