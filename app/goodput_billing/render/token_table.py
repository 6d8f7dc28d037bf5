"""The table of a statement about tokens by account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_billing.render.wording import UNKNOWN, Table, account_name
from goodput_billing.statement.summary import account_of
from goodput_billing.statement.tokens import COLUMNS

if TYPE_CHECKING:
    from goodput_billing.statement.statement import Statement

J_PER_KJ = 1000


def tokens(statement: Statement) -> Table:
    """Return tokens by account for their cost and energy; empty where no run reports tokens."""
    found: dict[str, tuple[int, float | None, float | None]] = {}
    for row in statement.rows.iter_rows(named=True):
        count, per_cost, per_j = (row[name] for name in COLUMNS)
        if count is not None:
            of_account = {"account": account_of(row), "cluster": row["cluster"]}
            found[account_name(statement, of_account)] = count, per_cost, per_j
    return Table(
        "Tokens",
        [
            ("Account", False), ("Tokens", True),
            (f"Tokens per {statement.policy.currency}", True), ("Tokens per kJ", True),
        ],
        [
            [name, f"{count:,}", _ratio(per_cost), _ratio(per_j and per_j * J_PER_KJ)]
            for name, (count, per_cost, per_j) in sorted(found.items())
        ],
        note="As known now; no amount depends on it. Tokens of training steps that were not lost, "
        "of runs that report them, for the cost at the rates of all time allocated to these runs, "
        "and for the energy that their GPUs counted.",
    )  # fmt: skip


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
