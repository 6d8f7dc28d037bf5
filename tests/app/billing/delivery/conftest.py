"""A mail server and a web server that take statements, or do not; a database with days to deliver.

The mail server is aiosmtpd: it speaks SMTP over a socket, with STARTTLS and logins.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from goodput_billing.delivery.deliver import Plan
from goodput_billing.delivery.settings import MailSettings, ReportSettings, WebhookSettings
from goodput_billing.statement.charges import Policy
from goodput_billing.statement.closing import Booking
from goodput_billing.statement.rows import digest
from goodput_billing.statement.settings import StatementSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from goodput_billing.statement.statement import Statement

PASSWORD = "corr3ct-h0rse"  # noqa: S105 -- of a server that lives as long as a test
POLICY = Policy("none", False, {})


@dataclass
class Post:
    """A mail server: what it took, and what it answers instead of taking it."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # by recipient: what is answered
    answers: list[str] = field(default_factory=list)  # to the next mails, then they are taken
    attempts: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)

    async def handle_RCPT(  # noqa: N802 -- a name of aiosmtpd
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        """Take a recipient, or not."""
        if (answer := self.refused.get(address)) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 -- as above
        self, _server: Any, _session: Any, envelope: Any
    ) -> str:
        """Take a mail, or not."""
        self.attempts += 1
        if self.answers:
            return self.answers.pop(0)
        self.raw.append(envelope.content)
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(parsed)
        self.recipients.append(list(envelope.rcpt_tos))
        self.arrived.set()
        return "250 taken"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _how: str, data: Any
    ) -> Any:
        """Let in who knows the password."""
        login = data.login.decode(), data.password.decode()
        self.logins.append(login)
        return AuthResult(success=login == ("goodput", PASSWORD), handled=False)


@contextlib.contextmanager
def post_office(**options: Any) -> Iterator[Post]:
    """Run a mail server until the end of the block."""
    post = Post()
    loop = asyncio.new_event_loop()

    def protocol() -> SMTP:
        return SMTP(
            post, loop=loop, authenticator=post.authenticate, hostname="mail.test", **options
        )

    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0))
    post.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield post
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@pytest.fixture
def post() -> Iterator[Post]:
    """Give a mail server without encryption."""
    with post_office() as running:
        yield running


@pytest.fixture
def secure_post(certificate: tuple[Path, Path]) -> Iterator[Post]:
    """Give a mail server that wants STARTTLS, then user and password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with post_office(tls_context=context, require_starttls=True, auth_required=True) as running:
        yield running


@dataclass
class Hook:
    """A web server: what was posted, and what it answers: status and headers, 200 without any."""

    url: str = ""
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    said: bytes = b""
    pause_s: float = 0.0  # between the bytes of an answer


@contextlib.contextmanager
def web(context: ssl.SSLContext | None = None) -> Iterator[Hook]:
    """Run a web server until the end of the block."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.posts.append(({k.lower(): v for k, v in self.headers.items()}, body))
            hook.paths.append(self.path)
            status, headers = hook.answers.pop(0) if hook.answers else (200, {})
            with contextlib.suppress(OSError):
                for byte in b"HTTP/1.0 200 OK\r\n" if hook.pause_s else b"":
                    self.wfile.write(bytes([byte]))
                    time.sleep(hook.pause_s)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(hook.said)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    if context is not None:
        http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    scheme = "http" if context is None else "https"
    hook.url = f"{scheme}://127.0.0.1:{http.server_address[1]}"
    yield hook
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Give a web server."""
    with web() as running:
        yield running


@pytest.fixture
def secure_hook(certificate: tuple[Path, Path]) -> Iterator[Hook]:
    """Give a web server behind a certificate of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with web(context) as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no proxy of the tester's stand between."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


def mail_settings(post: Post, **more: Any) -> MailSettings:
    """Return settings for a mail server of these tests."""
    return MailSettings(
        **{
            "host": "127.0.0.1",
            "port": post.port,
            "sender": "Goodput <goodput@lab.example>",
            "to": ("finance@lab.example",),
            "security": "none",
            "timeout_s": 10,
            **more,
        }
    )


@pytest.fixture
def by_mail() -> Callable[..., MailSettings]:
    """Give what makes settings for a mail server."""
    return mail_settings


@pytest.fixture
def closed(make: Any, lines: Any) -> Statement:
    """Give the statement of a closed day."""
    return booked(make(lines, POLICY))


@pytest.fixture
def corrected(make: Any, lines: Any) -> Statement:
    """Give the same day with a correction: account nlp held ten more hours."""
    more = make(
        [lines[0] | {"gpu_ms": 36_000_000, "energy_mj": None, "metered_mj_price": None}], POLICY
    )
    first = booked(make(lines, POLICY))
    second = booked(more, number=1).bookings[0]
    both = pl.concat([first.rows, more.rows.with_columns(pl.lit(1, pl.Int32).alias("correction"))])
    return replace(first, bookings=[*first.bookings, second], rows=both)


def booked(made: Statement, number: int = 0) -> Statement:
    """Return an open statement as it is once its day is closed."""
    rows = made.rows.drop("correction")
    booking = Booking(number, made.closes_ms, digest(rows), made.policy, rows, rows)
    return replace(made, bookings=[booking])


@dataclass
class Clock:
    """A clock that is set by hand; pauses: how long was waited."""

    at: datetime = datetime(2026, 11, 20, 15, tzinfo=UTC)
    pauses: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the moment that was set."""
        return self.at

    def wait(self, seconds: float) -> bool:
        """Note a pause, and go on."""
        self.pauses.append(seconds)
        return False


@pytest.fixture
def clock() -> Clock:
    """Give a clock at 20 November, 15 h."""
    return Clock()


@pytest.fixture
def plan(tmp_path: Path, clock: Clock, post: Post, hook: Hook) -> Plan:
    """Give a plan: two formats, mail and webhook."""
    report = ReportSettings(
        formats=("csv", "html"),
        files_url="https://files.example/gpu",
        mail=mail_settings(post, attach=("csv",)),
        webhook=WebhookSettings(url=f"{hook.url}/secret-path", timeout_s=5),
    )
    return Plan(tmp_path / "out", report, StatementSettings(), clock.wait, clock.now)


@pytest.fixture
def password() -> str:
    """Give the password that the mail server knows."""
    return PASSWORD
