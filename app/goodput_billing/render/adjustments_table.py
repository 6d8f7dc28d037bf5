"""The table of notes, disputes and credits of a statement: beside its amounts."""

from goodput_billing.render.wording import NONE, Table, amounts, table
from goodput_billing.statement.statement import Statement

WORDS = {"note": "Note", "dispute": "Dispute", "resolved": "Resolution", "credit": "Credit"}


def adjustments(statement: Statement) -> Table:
    """Return what was written about this day and, while it is open, about the day before."""
    rows = []
    for row in statement.adjustments.iter_rows(named=True):
        booked = "" if row["booked_on"] is None else f" on {row['booked_on']}"
        amount = NONE
        if row["amount"] is not None:
            amount = f"{amounts(row['currency'])(row['amount'])} {row['currency']}"
        rows.append([
            str(row["day"]), WORDS[row["kind"]],
            f"{row['status'] or row['outcome'] or NONE}{booked}",
            row["account"], row["user_name"] or NONE, row["line"] or NONE, amount,
            row["reason"], row["made_by"], row["adjustment_id"],
        ])  # fmt: skip
    return table("adjustments", statement, rows)
