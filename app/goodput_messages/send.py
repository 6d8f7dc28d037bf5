"""Hands one message over to its target; raises NotSentError where it is not taken."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from html import escape

from goodput_messages import bodies, http_post, mail
from goodput_messages.mail import Letter
from goodput_messages.message import FINDINGS_SHOWN, Message, Notice, headline, lines, more
from goodput_messages.settings import MailSettings
from goodput_messages.targets import Alertmanager, AnyTarget, HttpTarget, Mail, Owner
from goodput_queries.catalog.rules import SEVERITIES
from goodput_queries.errors import GoodputError

ALERTS_PATH = "/api/v2/alerts"
TEST_TITLE = "Test of a notification"


def send(
    content: Message,
    target: AnyTarget,
    now: datetime,
    default: MailSettings | None = None,
    had: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Send a message; return who has it: addresses of mail, nobody named otherwise.

    default: the mail server of `[report.mail]`. had: who has it already.
    """
    if isinstance(target, Alertmanager):
        is_over = content.event == "resolved"
        ends_ms = content.at_ms if is_over else _expiry_ms(target, now)
        _post_alerts(bodies.alerts(content.notices, ends_ms=ends_ms), content.identity, target, now)
    elif isinstance(target, HttpTarget):
        form = {"slack": bodies.slack, "teams": bodies.teams}.get(target.kind, bodies.own)
        key = {"Idempotency-Key": content.identity}
        http_post.post(form(content), content.identity, target.endpoint(), now, key)
    else:
        server = target.server(_addresses(content, target), default)
        return mail.send(mail.message(letter(content), server, {}, now), server, had)
    return had


def send_again(notices: Iterable[Notice], target: Alertmanager, now: datetime) -> None:
    """Tell an Alertmanager that these findings are still open: it forgets what nobody repeats."""
    body = bodies.alerts(notices, ends_ms=_expiry_ms(target, now))
    _post_alerts(body, "still-open", target, now)


def probe(target: AnyTarget, default: MailSettings | None) -> str:
    """Return the server of a target that answers; raises GoodputError. Nothing is sent."""
    if isinstance(target, HttpTarget):
        return http_post.probe(target.endpoint())
    to = target.addresses if isinstance(target, Mail) else ("nobody@localhost",)
    return mail.probe(target.server(to, default))


def trial(target: AnyTarget, now: datetime, user: str | None) -> Message:
    """Return the message of a test; user: of a target that is the owner of a job."""
    at_ms = int(now.timestamp() * 1000)
    notice = Notice(
        finding_key="test",
        rule="goodput_test",
        severity=SEVERITIES[-1],
        title=TEST_TITLE,
        subject="no finding",
        since_ms=at_ms,
        evidence="goodput notify --test sent this.",
        what_to_do="nothing",
        run="test",
        user=user,
    )
    recipient = user or "" if isinstance(target, Owner) else ""
    return Message(f"finding-test-{at_ms}", target.label, "open", (notice,), at_ms, recipient)


def letter(content: Message) -> Letter:
    """Return a message as mail: text and HTML, with an identity that a second copy shares."""
    text, html = [], []
    for one in content.notices[:FINDINGS_SHOWN]:
        first, *others = lines(one, content)
        text += [first, *(f"  {line}" for line in others)]
        html.append(f"<h3>{escape(first)}</h3><p>{'<br>'.join(escape(line) for line in others)}")
        if one.url is not None:
            text.append(f"  {one.url}")
            html.append(f'<br><a href="{escape(one.url)}">Open in Goodput</a>')
        text.append("")
        html.append("</p>")
    if (rest := more(content)) is not None:
        text.append(rest)
        html.append(f"<p>{escape(rest)}</p>")
    return Letter(
        headline(content),
        "\n".join(text).rstrip("\n") + "\n",
        f'<!doctype html><meta charset="utf-8"><body>{"".join(html)}</body>',
        content.identity,
        content.answers,
    )


def _addresses(content: Message, target: Mail | Owner) -> tuple[str, ...]:
    if isinstance(target, Mail):
        return target.addresses
    address = target.address_of(content.recipient)
    if address is None:
        raise GoodputError(
            f"nothing says where user {content.recipient!r} gets mail; see notify.addresses."
        )
    return (address,)


def _post_alerts(body: bytes, identity: str, target: Alertmanager, now: datetime) -> None:
    endpoint = target.endpoint()
    url = f"{endpoint.url.rstrip('/').removesuffix(ALERTS_PATH)}{ALERTS_PATH}"
    http_post.post(body, identity, replace(endpoint, url=url), now)


def _expiry_ms(target: Alertmanager, now: datetime) -> int:
    return int((now.timestamp() + target.expires_s) * 1000)
