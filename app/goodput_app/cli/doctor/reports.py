"""Part of `goodput doctor`: what was delivered of statements, and who answers of all receivers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import goodput_app
from goodput_app.server.metrics import push
from goodput_app.settings import Settings, settings, settings_file
from goodput_billing.delivery.archive import past_statements
from goodput_billing.delivery.due import LOOKED_BACK_DAYS, last_day
from goodput_messages import http_post, mail
from goodput_messages.send import probe as probe_target
from goodput_queries.errors import GoodputError
from goodput_queries.storage.opening import IN_MEMORY

Finding = tuple[str, str, str, str]  # as in doctor.py: what, status, found, next

EXAMPLE = Path(goodput_app.__file__).with_name("goodput.example.toml")
BEHIND_DAYS = 2  # a day closes some hours after its end; a second one missing is too late


def report_findings(db: str) -> Iterator[Finding]:
    """Yield the last delivery, what failed, and whether mail server and webhook answer."""
    try:
        chosen = settings()
        yield from _deliveries(db, chosen)
    except GoodputError as error:
        yield "statements", "problem", str(error), f"fix it there, or in {settings_file()}"
        return
    report = chosen.report
    if (mail_settings := report.mail) is not None:
        yield _answer("report.mail", lambda: mail.probe(mail_settings))
    if (webhook_settings := report.webhook) is not None:
        yield _answer("report.webhook", lambda: http_post.probe(webhook_settings.endpoint()))


def otlp_findings() -> Iterator[Finding]:
    """Yield whether metrics can be pushed: the packages are there and the server answers."""
    try:
        given = settings().otlp
    except GoodputError:  # said already
        return
    if given is not None:
        yield _answer("otlp", lambda: push.probe(given))


def _deliveries(db: str, chosen: Settings) -> Iterator[Finding]:
    if db == IN_MEMORY:
        return
    folder = chosen.report.folder_for(db)
    past = past_statements(folder)
    if not past:
        then = f"goodput report --deliver; to do it daily see [report] in {EXAMPLE}"
        yield "statements", "missing", f"none was delivered to {folder}", then
        return
    last, ended = past[0], last_day(chosen.statement, datetime.now(UTC))
    found = f"the last is of {last.date}, {last.state}, in {folder}"
    if chosen.report.at is not None and last.date <= ended - timedelta(BEHIND_DAYS):
        then = f"goodput report --deliver --date {last.date + timedelta(1)} says why"
        yield "statements", "problem", found, then
    else:
        yield "statements", "ok", found, ""
    for one in (one for one in past if one.date > ended - timedelta(LOOKED_BACK_DAYS)):
        for delivery in one.latest:
            if delivery.error is not None:
                then = "it is retried; to retry now: goodput report --deliver"
                text = f"{one.date} failed {delivery.tried_at:%F %H:%M}Z: {delivery.error}"
                yield f"statements by {delivery.channel}", "problem", text, then


def _answer(section: str, probe: Callable[[], str]) -> Finding:
    try:
        return section, "ok", f"{probe()} answers", ""
    except GoodputError as error:
        return section, "problem", str(error), f"fix it there, or [{section}] in {settings_file()}"


def notification_findings() -> Iterator[Finding]:
    """Yield whether the server of each [[notify]] target answers; nothing is sent."""
    try:
        chosen = settings()
    except GoodputError:  # said already
        return
    for target in chosen.notify:
        what = f"notify {target.label}"
        try:
            yield what, "ok", f"{probe_target(target, chosen.report.mail)} answers", ""
        except GoodputError as error:
            fix = f"fix it there, or [[notify]] in {settings_file()}; then goodput notify --test"
            yield what, "problem", str(error), fix
