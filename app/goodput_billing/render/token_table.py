"""The tables of a statement about tokens by account: of training and of serving."""

from collections.abc import Sequence
from typing import Any

from goodput_billing.render.wording import UNKNOWN, Table, account_name
from goodput_billing.statement.account_measures import SERVED_COLUMNS, TOKEN_COLUMNS
from goodput_billing.statement.amounts.summary import account_of
from goodput_billing.statement.statement import Statement

J_PER_KJ = 1000
J_PER_MJ = 1_000_000


def tokens(statement: Statement) -> Table:
    """Return tokens by account for their cost and energy; empty where no run reports tokens."""
    return Table(
        "Tokens",
        [
            ("Account", False), ("Tokens", True),
            (f"Tokens per {statement.policy.currency}", True), ("Tokens per kJ", True),
        ],
        [
            [name, f"{count:,}", _ratio(per_cost), _ratio(per_j and per_j * J_PER_KJ)]
            for name, (count, per_cost, per_j) in of_accounts(statement, TOKEN_COLUMNS)
            if count is not None
        ],
        note="As known now; no amount depends on it. Tokens of training steps that were not lost, "
        "of runs that report them, for the cost at the rates of all time allocated to these runs, "
        "and for the energy that their GPUs counted.",
    )  # fmt: skip


def served(statement: Statement) -> Table:
    """Return tokens of serving engines by account; empty where none reports tokens."""
    currency = statement.policy.currency
    return Table(
        "Served tokens",
        [
            ("Account", False), ("Input tokens", True), ("Output tokens", True),
            (f"{currency} per million", True), ("Of input", True), ("Of output", True),
            ("MJ per million", True), ("Of input", True), ("Of output", True),
        ],
        [
            [
                name,
                *(UNKNOWN if count is None else f"{count:,}" for count in values[:2]),
                *(_price(cost) for cost in values[2:5]),
                *(_ratio(joules and joules / J_PER_MJ) for joules in values[5:]),
            ]
            for name, values in of_accounts(statement, SERVED_COLUMNS)
            if any(count is not None for count in values[:2])
        ],
        note="As known now; no amount depends on it. Tokens that serving engines counted, for the "
        "cost at the rates and for the energy of all time of their GPUs, model load and idle time "
        "included. Input and output share both by the seconds that requests spent in prefill and "
        "decode. Engines whose GPUs several accounts had on the day are left out.",
    )  # fmt: skip


def of_accounts(statement: Statement, columns: Sequence[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """Return accounts by name with what all their rows say in these columns."""
    found: dict[str, tuple[Any, ...]] = {}
    for row in statement.rows.iter_rows(named=True):
        of_account = {"account": account_of(row), "cluster": row["cluster"]}
        values = tuple(row[name] for name in columns)
        if any(value is not None for value in values):
            found[account_name(statement, of_account)] = values
    return sorted(found.items())


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def _price(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f}" if value >= 1 else f"{value:,.4f}"
