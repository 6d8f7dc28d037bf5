"""The tables of a statement about what accounts used: energy and carbon, idle programs, tokens."""

from collections.abc import Sequence
from typing import Any

from goodput_billing.render.wording import NONE, UNKNOWN, Table, account_name, hours, percent, table
from goodput_billing.statement.account_measures import (
    IDLE_COLUMNS,
    SERVED_COLUMNS,
    TOKEN_COLUMNS,
)
from goodput_billing.statement.amounts.summary import account_of
from goodput_billing.statement.statement import Statement

J_PER_KJ = 1000
J_PER_MJ = 1_000_000


def energy(statement: Statement) -> Table:
    """Return energy and carbon by account; empty where nothing measured energy."""
    sums: dict[str, list[dict[str, Any]]] = {}
    for row in statement.rows.iter_rows(named=True):
        of_account = {"account": account_of(row), "cluster": row["cluster"]}
        sums.setdefault(account_name(statement, of_account), []).append(row)
    is_known = statement.rows["energy_kwh"].is_not_null().any()
    rows = [
        [name, *_energy_of(group)]
        for name, group in sorted(sums.items())
        if is_known and any(row["gpu_ms"] for row in group)
    ]
    total = ["Total", *_energy_of(statement.rows.to_dicts())]
    return table("energy", statement, rows, total if len(rows) > 1 else None)


def _energy_of(group: list[dict[str, Any]]) -> list[str]:
    known = [row for row in group if row["energy_kwh"] is not None]
    if not known:
        return [UNKNOWN] * 4
    kwh = sum(row["energy_kwh"] for row in known)
    with_carbon = sum(row["energy_kwh"] * (row["carbon_known_ratio"] or 0) for row in known)
    carbon = [row["carbon_kg"] for row in known if row["carbon_kg"] is not None]
    gpu_ms = sum(row["gpu_ms"] for row in group)
    measured_ms = sum(row["measured_ms"] or 0 for row in group)
    return [
        f"{kwh:,.1f}",
        f"{100 * measured_ms / gpu_ms:.1f} %" if gpu_ms else NONE,
        f"{sum(carbon):,.1f}" if carbon else UNKNOWN,
        f"{100 * with_carbon / kwh:.1f} %" if kwh else NONE,
    ]


def executing_idle(statement: Statement) -> Table:
    """Return executing idle by account; empty where memory was not read."""
    return table(
        "executing_idle",
        statement,
        [
            [name, hours(idle_ms), percent(idle_ms, read_ms)]
            for name, (idle_ms, read_ms) in of_accounts(statement, IDLE_COLUMNS)
        ],
    )


def tokens(statement: Statement) -> Table:
    """Return tokens by account for their cost and energy; empty where no run reports tokens."""
    rows = [
        [name, f"{count:,}", _ratio(per_cost), _ratio(per_j and per_j * J_PER_KJ)]
        for name, (count, per_cost, per_j) in of_accounts(statement, TOKEN_COLUMNS)
        if count is not None
    ]
    return table("tokens", statement, rows)


def served(statement: Statement) -> Table:
    """Return tokens of serving engines by account; empty where none reports tokens."""
    rows = [
        [
            name,
            *(UNKNOWN if count is None else f"{count:,}" for count in values[:2]),
            *(_price(cost) for cost in values[2:5]),
            *(_ratio(joules and joules / J_PER_MJ) for joules in values[5:]),
        ]
        for name, values in of_accounts(statement, SERVED_COLUMNS)
        if any(count is not None for count in values[:2])
    ]
    return table("served", statement, rows)


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
