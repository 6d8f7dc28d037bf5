"""A mail server and a web server that take what is sent to them, or do not.

The mail server is aiosmtpd: it speaks SMTP over a socket, with STARTTLS and logins.
"""

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, AuthResult
from tests.ingest.http_pages import send, serving

from goodput_billing.delivery.settings import StatementMail

PASSWORD = "corr3ct-h0rse"  # noqa: S105 -- of a server that lives as long as a test


@dataclass
class Clock:
    """A clock that is set by hand; pauses: how long was waited."""

    at: datetime
    pauses: list[float] = field(default_factory=list)

    def now(self):
        """Return the moment that was set."""
        return self.at

    def wait(self, seconds):
        """Note a pause, and go on."""
        self.pauses.append(seconds)
        return False


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
        self, _server, _session, envelope, address, _options
    ):
        """Take a recipient, or not."""
        if (answer := self.refused.get(address)) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 -- as above
        self, _server, _session, envelope
    ):
        """Take a mail, or not."""
        self.attempts += 1
        if self.answers:
            return self.answers.pop(0)
        self.raw.append(envelope.content)
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        self.mails.append(parsed)
        self.recipients.append(list(envelope.rcpt_tos))
        self.arrived.set()
        return "250 taken"

    def authenticate(self, _server, _session, _envelope, _how, data):
        """Let in who knows the password."""
        login = data.login.decode(), data.password.decode()
        self.logins.append(login)
        return AuthResult(success=login == ("goodput", PASSWORD), handled=False)


@contextlib.contextmanager
def post_office(*, port=0, **options):
    """Run a mail server until the end of the block; port: 0 for any."""
    post = Post()
    loop = asyncio.new_event_loop()

    def protocol():
        return SMTP(post, loop=loop, authenticator=post.authenticate, hostname="test", **options)

    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", port))
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


@dataclass
class Hook:
    """A web server: what was posted, and what it answers: status and headers, 200 without any."""

    url: str = ""
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    said: bytes = b""
    pause_s: float = 0.0  # between the bytes of an answer
    is_over: threading.Event = field(default_factory=threading.Event)  # nobody waits any more


@contextlib.contextmanager
def web(context=None, *, port=0):
    """Run a web server that takes posts until the end of the block; port: 0 for any."""
    hook = Hook()

    def answer(request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        hook.posts.append(({k.lower(): v for k, v in request.headers.items()}, body))
        hook.paths.append(request.path)
        status, headers = hook.answers.pop(0) if hook.answers else (200, {})
        if hook.pause_s:
            for byte in b"HTTP/1.0 200 OK\r\n\r\n":
                request.wfile.write(bytes([byte]))
                hook.is_over.wait(hook.pause_s)
            return
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(hook.said)

    with serving(answer, context, port=port) as address:
        hook.url = f"{'http' if context is None else 'https'}://{address}"
        yield hook
        hook.is_over.set()


@contextlib.contextmanager
def pages(answer):
    """Run a web server of pages until the end of the block; give its URL.

    answer: body and content type by path and headers; None is a failure of the server
    """

    def reply(request):
        found = answer(request.path, request.headers)
        body, kind = found or (b"", "text/plain")
        send(request, body.decode(), 500 if found is None else 200, kind=kind)

    with serving(reply) as address:
        yield f"http://{address}"


def free_port():
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def mail_settings(post, **more):
    """Return settings for a mail server of these tests."""
    return StatementMail(
        **{"host": "127.0.0.1", "port": post.port, "sender": "Goodput <goodput@lab.example>",
           "to": ("finance@lab.example",), "security": "none", "timeout_s": 10, **more},
    )  # fmt: skip
