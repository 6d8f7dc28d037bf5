"""A statement posted to a URL as JSON, signed so that the receiver knows whose it is.

    POST /path
    Content-Type: application/json
    Authorization: Bearer TOKEN           where a token is set
    webhook-id: statement-2026-11-19-...  the same whenever the same statement is posted again
    webhook-timestamp: 1795253000         epoch seconds
    webhook-signature: v1,BASE64          where a secret is set

See `http_post` for the signature.
"""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from goodput_billing.delivery.archive import PastStatement
from goodput_billing.statement.statement import Statement

ACCOUNTS_MOST = 10_000
LOSSES_MOST = 10


def payload(
    made: Statement, entry: PastStatement, identity: str, links: Sequence[tuple[str, str]]
) -> bytes:
    """Return what is posted: amounts as texts with all their cents, GPU times in milliseconds."""
    accounts = made.accounts.filter(
        (made.accounts["gpu_ms"] != 0) | (made.accounts["total_cost"] != 0)
    )
    body = {
        "schema": "goodput.statement/1",
        "event": _event(entry),
        "id": identity,
        "date": entry.date.isoformat(),
        "zone": entry.zone,
        "from_ms": made.day.from_ms,
        "to_ms": made.day.to_ms,
        "organisation": made.settings.organisation,
        "site": made.settings.site,
        "state": entry.state,
        "status": entry.status,
        "corrections": entry.corrections,
        "currency": entry.currency,
        "definition_version": entry.definition_version,
        "totals": {
            "total": str(entry.total_cost),
            "accounts": str(entry.accounts_cost),
            "capacity_gpu_ms": entry.capacity_ms,
            "held_gpu_ms": entry.held_ms,
            "productive_gpu_ms": entry.productive_ms,
            "unpriced_gpu_ms": entry.unpriced_ms,
        },
        "accounts": _rows(
            accounts.head(ACCOUNTS_MOST).iter_rows(named=True),
            ("cluster", "account", "is_account", "gpu_ms", "productive_ms", "own_waste_cost",
             "platform_waste_cost", "idle_share_cost", "electricity_cost", "credit_cost",
             "total_cost", "yesterday_cost", "month_cost"),
        ),
        "accounts_left_out": max(accounts.height - ACCOUNTS_MOST, 0),
        "losses": _rows(
            made.losses.head(LOSSES_MOST).iter_rows(named=True),
            ("cluster", "account", "run_id", "label", "cause", "gpu_ms", "cost", "fix"),
        ),
        "files": list(entry.files),
        "links": dict(links),
    }  # fmt: skip
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _event(entry: PastStatement) -> str:
    if not entry.is_closed:
        return "statement.provisional"
    return "statement.corrected" if entry.corrections else "statement.closed"


def _rows(rows: Iterable[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return these columns of rows; amounts as texts, named without a currency."""
    return [
        {
            name.removesuffix("_cost") if name != "cost" else "cost": _plain(row[name])
            for name in names
        }
        for row in rows
    ]


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Decimal) else value
