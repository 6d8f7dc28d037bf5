"""A POST to an HTTP server, of JSON signed where a secret is set, and why it was not taken.

The signature is that of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over
`id.timestamp.body`; a secret that begins with `whsec_` is base64, any other is taken as it stands.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import httpx

from goodput_messages.printable import printable
from goodput_messages.retries import NotSentError, tls_error, trusted
from goodput_queries.errors import GoodputError

ANSWER_READ_BYTES = 4096
SAID_MAX_CHARS = 200
SECRET_MARK = "whsec_"  # noqa: S105 -- how a secret begins, not one
NOT_NOW = frozenset({408, 425, 429})  # and all above 499


@dataclass(frozen=True)
class Endpoint:
    """A URL that takes a POST. section: of the settings, which errors name."""

    url: str = field(repr=False)  # it may be a secret
    section: str
    timeout_s: int
    ca_file: str | None = None
    token: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)

    @property
    def origin(self) -> str:
        """Return scheme and server: no sentence names more of a URL."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def post(
    body: bytes, identity: str, to: Endpoint, at: datetime, headers: dict[str, str] | None = None
) -> None:
    """Post JSON as the message `identity`; raises NotSentError where it is not taken."""
    at_s = int(at.timestamp())
    sent = {
        "Content-Type": "application/json",
        "webhook-id": identity,
        "webhook-timestamp": str(at_s),
        **(headers or {}),
    }
    if to.secret is not None:
        sent["webhook-signature"] = signature(to.secret, identity, at_s, body, to.section)
    post_as_is(body, sent, to)


def post_as_is(
    body: bytes, headers: dict[str, str], to: Endpoint, *, reads_answer: bool = False
) -> bytes:
    """Post a body with these headers and the token; raises NotSentError where it is not taken.

    Returns the start of the answer, nothing unless that is to be read.
    """
    authorized = {} if to.token is None else {"Authorization": f"Bearer {to.token}"}
    status, wait_s, said = _asked("POST", to.url, headers | authorized, body, to, reads_answer)
    if not 200 <= status < 300:
        raise _refusal(to, status, wait_s, said.decode("utf-8", "replace"))
    return said


def probe(to: Endpoint) -> str:
    """Return the server that answers, whatever it does; raises GoodputError where none does.

    Its root is asked, not the URL: that could count as a post.
    """
    _asked("HEAD", f"{to.origin}/", {}, b"", to, reads_answer=False)
    return to.origin


def _asked(
    method: str, url: str, headers: dict[str, str], body: bytes, to: Endpoint, reads_answer: bool
) -> tuple[int, float, bytes]:
    """Return what a server answers; raises NotSentError where it does not."""
    where = to.origin
    try:
        request = httpx.Request(method, url, content=body, headers=headers)
    except (httpx.InvalidURL, UnicodeError):
        raise NotSentError(
            f"{where}: url or token of [{to.section}] has characters that HTTP cannot send."
        ) from None  # that error has them in it
    context = trusted(to.ca_file, to.section)
    try:
        return asyncio.run(_answer(request, context, to.timeout_s, reads_answer))
    except (httpx.TimeoutException, TimeoutError):
        raise NotSentError(
            f"{where} did not answer within {to.timeout_s} s ({to.section}.timeout_s).",
            is_transient=True,
        ) from None  # the errors of the client name the whole URL
    except (httpx.HTTPError, OSError) as error:
        raise _no_answer(to, error) from None


def signature(secret: str, identity: str, at_s: int, body: bytes, section: str) -> str:
    """Return the header that proves that a body is from who knows the secret."""
    key = secret.encode()
    if secret.startswith(SECRET_MARK):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_MARK), validate=True)
        except (binascii.Error, ValueError):
            raise GoodputError(
                f"the secret of [{section}] begins with {SECRET_MARK} and is not base64."
            ) from None
    signed = hmac.new(key, f"{identity}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


async def _answer(
    request: httpx.Request, context: ssl.SSLContext, timeout_s: float, reads_answer: bool
) -> tuple[int, float, bytes]:
    """Return status, requested seconds to wait, and the start of the answer.

    reads_answer: of a success too; else that has none.
    """
    async with (
        asyncio.timeout(timeout_s),  # for all of it: a server may drip
        httpx.AsyncClient(timeout=timeout_s, verify=context) as client,
        contextlib.aclosing(await client.send(request, stream=True)) as answer,
    ):
        said = b""
        if reads_answer or not answer.is_success:
            async for chunk in answer.aiter_raw(ANSWER_READ_BYTES):
                said += chunk
                break
        asked = answer.headers.get("Retry-After", "")
        wait_s = float(asked) if asked.isascii() and asked.isdigit() else 0.0
        return answer.status_code, wait_s, said


def _no_answer(to: Endpoint, error: Exception) -> NotSentError:
    reason = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return NotSentError(
                f"{to.origin}: no secure connection ({tls_error(cause)}). Check url and ca_file of "
                f"[{to.section}]."
            )
        if isinstance(cause, OSError) and cause.errno:  # of a name that is not found it is below 0
            reason = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return NotSentError(f"{to.origin}: no connection ({reason}).", is_transient=True)


def _refusal(to: Endpoint, status: int, wait_s: float, said: str) -> NotSentError:
    words = printable(" ".join(said.split()))[:SAID_MAX_CHARS]
    advice = {
        401: f" Check token and secret of [{to.section}].",
        403: f" Check token and secret of [{to.section}].",
        404: f" Check url of [{to.section}].",
        410: f" Check url of [{to.section}].",
    }.get(status, f" Name the URL that it moved to in [{to.section}]." if status < 400 else "")
    return NotSentError(
        f"{to.origin} answered {status}{f' ({words})' if words else ''}.{advice}",
        is_transient=status in NOT_NOW or status >= 500,
        wait_s=wait_s,
    )
