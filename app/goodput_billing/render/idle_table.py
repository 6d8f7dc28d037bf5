"""The table of a statement about executing idle by account."""

from goodput_billing.render.token_table import of_accounts
from goodput_billing.render.wording import Table, hours, percent
from goodput_billing.statement.account_measures import IDLE_COLUMNS
from goodput_billing.statement.statement import Statement


def executing_idle(statement: Statement) -> Table:
    """Return executing idle by account; empty where memory was not read."""
    return Table(
        "Executing idle",
        [("Account", False), ("Executing idle GPU-h", True), ("Of time with readings", True)],
        [
            [name, hours(idle_ms), percent(idle_ms, read_ms)]
            for name, (idle_ms, read_ms) in of_accounts(statement, IDLE_COLUMNS)
        ],
        note="As known now; no amount depends on it. Allocated time in which a program was loaded "
        "(memory in use) and no reading showed activity, start-up left out.",
    )
