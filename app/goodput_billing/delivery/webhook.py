"""A statement posted to a URL as JSON, signed so that the receiver knows whose it is.

    POST /path
    Content-Type: application/json
    Authorization: Bearer TOKEN           where a token is set
    webhook-id: statement-2026-11-19-...  the same whenever the same statement is posted again
    webhook-timestamp: 1795253000         epoch seconds
    webhook-signature: v1,BASE64          where a secret is set

The signature is that of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over
`id.timestamp.body`; a secret that begins with `whsec_` is base64, any other is taken as it stands.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import os
import ssl
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from goodput_billing.delivery.send_with_retry import NotSentError, tls_error, trusted
from goodput_billing.render.safe_text import printable
from goodput_queries.errors import GoodputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from goodput_billing.delivery.archive import PastStatement
    from goodput_billing.delivery.settings import WebhookSettings
    from goodput_billing.statement.statement import Statement

ANSWER_READ_BYTES = 4096
SAID_MAX_CHARS = 200
ACCOUNTS_MOST = 10_000
LOSSES_MOST = 10
SECRET_MARK = "whsec_"  # noqa: S105 -- how a secret begins, not one
SECTION = "[report.webhook]"
NOT_NOW = frozenset({408, 425, 429})  # and all above 499


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


def post(body: bytes, identity: str, settings: WebhookSettings, at: datetime) -> None:
    """Post a statement; raises NotSentError where it is not taken.

    No sentence names more of the URL than its server: the rest may be a secret.
    """
    headers = {
        "Content-Type": "application/json",
        "webhook-id": identity,
        "webhook-timestamp": str(int(at.timestamp())),
    }
    if (token := settings.token()) is not None:
        headers["Authorization"] = f"Bearer {token}"
    if (secret := settings.secret()) is not None:
        headers["webhook-signature"] = signature(secret, identity, int(at.timestamp()), body)
    url = settings.target()
    status, wait_s, said = _asked("POST", url, headers, body, settings)
    if not 200 <= status < 300:
        raise _refusal(_origin(url), status, wait_s, said)


def probe(settings: WebhookSettings) -> str:
    """Return the server that answers, whatever it does; raises GoodputError where none does.

    Its root is asked, not the URL: that could count as a post.
    """
    where = _origin(settings.target())
    settings.token()
    settings.secret()
    _asked("HEAD", f"{where}/", {}, b"", settings)
    return where


def _asked(
    method: str, url: str, headers: dict[str, str], body: bytes, settings: WebhookSettings
) -> tuple[int, float, str]:
    """Return what a server answers; raises NotSentError where it does not."""
    where = _origin(url)
    try:
        request = httpx.Request(method, url, content=body, headers=headers)
    except (httpx.InvalidURL, UnicodeError):
        raise NotSentError(
            f"{where}: url or token of {SECTION} has characters that HTTP cannot send."
        ) from None  # that error has them in it
    context = trusted(settings.ca_file, "report.webhook")
    try:
        return asyncio.run(_answer(request, context, settings.timeout_s))
    except (httpx.TimeoutException, TimeoutError):
        raise NotSentError(
            f"{where} did not answer within {settings.timeout_s} s (report.webhook.timeout_s).",
            is_transient=True,
        ) from None  # the errors of the client name the whole URL
    except (httpx.HTTPError, OSError) as error:
        raise _no_answer(where, error) from None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def signature(secret: str, identity: str, at_s: int, body: bytes) -> str:
    """Return the header that proves that a body is from who knows the secret."""
    key = secret.encode()
    if secret.startswith(SECRET_MARK):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_MARK), validate=True)
        except (binascii.Error, ValueError):
            raise GoodputError(
                f"the secret of {SECTION} begins with {SECRET_MARK} and is not base64."
            ) from None
    signed = hmac.new(key, f"{identity}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


async def _answer(
    request: httpx.Request, context: ssl.SSLContext, timeout_s: float
) -> tuple[int, float, str]:
    """Return status, requested seconds to wait, and the start of the answer."""
    async with (
        asyncio.timeout(timeout_s),  # for all of it: a server may drip
        httpx.AsyncClient(timeout=timeout_s, verify=context) as client,
        contextlib.aclosing(await client.send(request, stream=True)) as answer,
    ):
        said = b""
        if not answer.is_success:
            async for chunk in answer.aiter_raw(ANSWER_READ_BYTES):
                said += chunk
                break
        asked = answer.headers.get("Retry-After", "")
        wait_s = float(asked) if asked.isascii() and asked.isdigit() else 0.0
        return answer.status_code, wait_s, said.decode("utf-8", "replace")


def _no_answer(where: str, error: Exception) -> NotSentError:
    reason = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return NotSentError(
                f"{where}: no secure connection ({tls_error(cause)}). Check url and ca_file of "
                f"{SECTION}."
            )
        if isinstance(cause, OSError) and cause.errno:  # of a name that is not found it is below 0
            reason = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return NotSentError(f"{where}: no connection ({reason}).", is_transient=True)


def _refusal(where: str, status: int, wait_s: float, said: str) -> NotSentError:
    words = printable(" ".join(said.split()))[:SAID_MAX_CHARS]
    advice = {
        401: f" Check token and secret of {SECTION}.",
        403: f" Check token and secret of {SECTION}.",
        404: f" Check url of {SECTION}.",
        410: f" Check url of {SECTION}.",
    }.get(status, f" Name the URL that it moved to in {SECTION}." if status < 400 else "")
    return NotSentError(
        f"{where} answered {status}{f' ({words})' if words else ''}.{advice}",
        is_transient=status in NOT_NOW or status >= 500,
        wait_s=wait_s,
    )


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
