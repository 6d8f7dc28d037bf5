"""The table of a statement about energy and carbon by account."""

from typing import Any

from goodput_billing.render.wording import NONE, UNKNOWN, Table, account_name
from goodput_billing.statement.amounts.summary import account_of
from goodput_billing.statement.statement import Statement


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
    return Table(
        "Energy and carbon",
        [
            ("Account", False), ("kWh", True), ("Measured", True), ("kg CO2e", True),
            ("kWh with an intensity", True),
        ],
        rows,
        note="As known now; no amount depends on it. Measured: share of the GPU time whose energy "
        "is known. Carbon is of the part of the energy in hours with an intensity.",
        total=["Total", *_energy_of(statement.rows.to_dicts())] if len(rows) > 1 else None,
    )  # fmt: skip


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
