"""Handing a statement out: its files, then mail and webhook, each version once on each channel.

What was done is written to the index of the folder after every step. A process that is killed
between a channel's answer and that line sends again: the mail then bears the same Message-ID, the
post the same `webhook-id`.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from urllib.parse import quote

from goodput_billing.delivery import archive, webhook
from goodput_billing.delivery.archive import Delivery, PastStatement
from goodput_billing.delivery.letter import Enclosed, letter
from goodput_billing.delivery.settings import ReportSettings
from goodput_billing.render import atomic, files
from goodput_billing.render.presentation import status_of
from goodput_billing.statement.amounts.rows import digest
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import Statement, statement
from goodput_messages import http_post, mail
from goodput_messages.retries import Sent, send_with_retry
from goodput_queries.database import Store
from goodput_queries.errors import StoreError, stated
from goodput_queries.storage.file_lock import hold_lock_file
from goodput_queries.storage.private import for_others

LOCK = ".delivering"
DRAFTS = ".drafts-"
FILES = "files"
PROVISIONAL = "open-"  # how the version of a day begins that is not closed
ERROR_MAX_CHARS = 600
MEGABYTE = 1_000_000
IDENTITY_CHARS = 16  # of a digest: a Message-ID on one line is read by all


@dataclass
class Plan:
    """Where to and by whose clock.

    wait: waits so many seconds; true where it is to end. is_asked: a person named the day, so that
    channels get it too that came into the settings after its delivery. away: channels that
    failed in this run and are not tried again in it.
    """

    folder: Path
    report: ReportSettings
    statement: StatementSettings
    wait: Callable[[float], bool]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    is_asked: bool = False
    away: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Outcome:
    """What became of a day.

    entry: as it stands in the index, None where the day is open and was not delivered. done: a
    line for each thing done. errors: a sentence for each channel that has not got it.
    """

    when: date
    entry: PastStatement | None
    status: str
    done: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Say whether nothing is left to do before evidence changes."""
        return self.entry is not None and self.entry.is_closed and not self.errors


@dataclass(frozen=True)
class Content:
    """What channels send of a statement; at: when."""

    made: Statement
    entry: PastStatement
    folder: Path
    report: ReportSettings
    at: datetime

    @property
    def identity(self) -> str:
        """Return what names this version of this day."""
        return _identity(self.entry.date, self.entry.version)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return where the dashboard and the files are, as far as the settings say."""
        found = []
        if self.report.dashboard_url is not None:
            found.append(("Dashboard", self.report.dashboard_url))
        if self.report.files_url is not None:
            base = f"{self.report.files_url.rstrip('/')}/"
            found += [
                (archive.form_of(name).upper(), base + quote(name)) for name in self.entry.files
            ]
        return found


def channels(report: ReportSettings) -> list[str]:
    """Return the channels that the settings name."""
    named = {"mail": report.mail, "webhook": report.webhook}
    return [name for name, chosen in named.items() if chosen is not None]


@contextlib.contextmanager
def delivery_lock(folder: Path) -> Iterator[None]:
    """Let one process at a time deliver the statements of a folder.

    Raises StoreError naming the process that does already, or where the folder cannot be written.
    """
    with stated(StoreError, f"{folder}: the folder of statements cannot be made"), for_others():
        folder.mkdir(parents=True, exist_ok=True)

    def refusal(pid: str) -> str:
        return f"{folder}: process {pid} delivers these statements now. Try again after it."

    with hold_lock_file(folder / LOCK, refusal):
        yield


def deliver(store: Store, when: date, plan: Plan, *, closes_now: bool = False) -> Outcome:
    """Make the statement of a day and deliver it; the caller holds the delivery_lock.

    Raises NoEvidenceError for a day without evidence; else as send_statement.
    """
    return send_statement(statement(store, when, plan.statement, closes_now=closes_now), plan)


def send_statement(made: Statement, plan: Plan) -> Outcome:
    """Deliver a statement to the channels that do not have it yet.

    A channel that fails stops no other. Raises StoreError where files or index cannot be written:
    nothing is sent then.
    """
    when, status = made.day.date, status_of(made)
    if not made.is_closed and not plan.report.provisional:
        return Outcome(when, None, status)
    known = {one.date: one for one in archive.past_statements(plan.folder)}
    entry, done = known.get(when), []
    if entry is None or not _is_filed(entry, made, plan):
        entry = _file(made, status, plan, entry)
        done.append(f"{len(entry.files)} files in {plan.folder}")
    errors = []
    for channel in channels(plan.report):
        if not (is_owed(entry, channel) or (plan.is_asked and not is_done(entry, channel))):
            continue
        if channel in plan.away:
            errors.append(f"{channel}: not tried, since it failed for a day before.")
            continue
        content = Content(made, entry, plan.folder, plan.report, plan.now())
        entry, sent = _sent(channel, content, plan)
        archive.keep(plan.folder, entry)
        if sent.error is None:
            to = f" to {len(sent.recipients)}" if sent.recipients else ""
            done.append(f"{channel}{to}")
        else:
            errors.append(f"{channel}: {sent.error}")
            if sent.is_for_later:
                plan.away.add(channel)
    return Outcome(when, entry, status, tuple(done), tuple(errors))


def is_done(entry: PastStatement, channel: str) -> bool:
    """Say whether a channel has this version; of provisional ones the first is enough."""
    taken = entry.taken(channel)
    if taken is None:
        return False
    is_provisional = not entry.is_closed and taken.version.startswith(PROVISIONAL)
    return taken.version == entry.version or is_provisional


def is_owed(entry: PastStatement, channel: str) -> bool:
    """Say whether a channel is still to get this version: it was there when that was made."""
    return entry.tried(channel) is not None and not is_done(entry, channel)


def version_of(made: Statement) -> str:
    """Return what changes with what is billed and with nothing else."""
    if not made.bookings:
        return f"{PROVISIONAL}{digest(made.rows)}"
    return f"{made.bookings[-1].number}-{made.bookings[-1].digest}"


def _identity(when: date, version: str) -> str:
    number, _, content = version.partition("-")
    return f"statement-{when}-{number}-{content[:IDENTITY_CHARS]}"


def _is_filed(entry: PastStatement, made: Statement, plan: Plan) -> bool:
    """Say whether the folder has this version, in all formats that are wanted."""
    return (
        entry.version == version_of(made)
        and {archive.form_of(name) for name in entry.files} == set(plan.report.formats)
        and all((plan.folder / name).is_file() for name in entry.files)
    )


def _file(made: Statement, status: str, plan: Plan, before: PastStatement | None) -> PastStatement:
    """Put the files of a statement into the folder, then the index that names them."""
    names = _write(made, plan)
    at = plan.now()
    version = version_of(made)
    frame = made.accounts
    of_accounts = frame.filter("is_account")
    entry = PastStatement(
        date=made.day.date,
        zone=made.day.zone,
        is_closed=made.is_closed,
        corrections=max(len(made.bookings) - 1, 0),
        version=version,
        status=status,
        made_at=at,
        total_cost=made.total_cost,
        accounts_cost=sum(of_accounts["total_cost"].drop_nulls(), Decimal("0.00")),
        capacity_ms=int(frame["gpu_ms"].sum()),
        held_ms=int(of_accounts["gpu_ms"].sum()),
        productive_ms=int(of_accounts["productive_ms"].sum()),
        unpriced_ms=int(frame["unpriced_ms"].sum()),
        currency=made.policy.currency,
        definition_version=made.policy.definition_version,
        files=names,
        deliveries=() if before is None else before.deliveries,
    )
    entry = entry.with_delivery(Delivery(FILES, version, at, 1, delivered_at=at))
    if before is None or before.version != version:
        for channel in channels(plan.report):
            entry = entry.with_delivery(Delivery(channel, version, at, 0))
    archive.keep(plan.folder, entry)
    return entry


def _write(made: Statement, plan: Plan) -> tuple[str, ...]:
    """Make all files apart, then put them into the folder: none, or each as a whole."""
    with stated(StoreError, f"{plan.folder}: the statement cannot be written"):
        with for_others():
            plan.folder.mkdir(parents=True, exist_ok=True)
        for left in plan.folder.glob(
            f"{DRAFTS}*"
        ):  # by one that was killed: there is one at a time
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(dir=plan.folder, prefix=DRAFTS) as drafts:
            written = files.write(made, Path(drafts), plan.report.formats)
            for path in written:
                path.replace(plan.folder / path.name)
            atomic.settle(plan.folder)
    return tuple(path.name for path in written)


def _sent(channel: str, content: Content, plan: Plan) -> tuple[PastStatement, Sent]:
    """Send on a channel; return the entry with what came of it."""
    entry = content.entry
    before, taken = entry.tried(channel), entry.taken(channel)
    answers = None if taken is None else taken.version
    sent = send_with_retry(
        partial(_send, channel, content, answers),
        () if before is None else before.recipients,
        plan.wait,
    )
    at = plan.now()
    delivery = Delivery(
        channel,
        entry.version,
        at,
        sent.attempts + (0 if before is None else before.attempts),
        delivered_at=at if sent.error is None else None,
        recipients=sent.recipients,
        error=None if sent.error is None else str(sent.error)[:ERROR_MAX_CHARS],
    )
    return entry.with_delivery(delivery), sent


def _send(
    channel: str, content: Content, answers: str | None, had: tuple[str, ...]
) -> tuple[str, ...]:
    """Send a statement to those who do not have it; return who has it. Raises GoodputError.

    answers: the version that the channel took before. A webhook is one recipient, which knows a
    version by its identity.
    """
    if channel == "webhook" and (settings := content.report.webhook) is not None:
        body = webhook.payload(content.made, content.entry, content.identity, content.links)
        http_post.post(body, content.identity, settings.endpoint(), content.at)
        return ()
    by_mail = content.report.mail
    assert by_mail is not None  # noqa: S101 -- see `channels`
    given, too_large = _attachments(content, by_mail.attach, by_mail.attach_max_mb * MEGABYTE)
    enclosed = Enclosed(content.links, list(given), too_large)
    before = None if answers is None else _identity(content.entry.date, answers)
    written = letter(content.made, content.entry.state, content.identity, enclosed, before)
    return mail.send(mail.message(written, by_mail, given, content.at), by_mail, had)


def _attachments(
    content: Content, formats: tuple[str, ...], most_bytes: int
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of these formats that fit together, and those that do not in words."""
    by_form = {archive.form_of(name): name for name in content.entry.files}
    given: dict[str, bytes] = {}
    too_large = []
    for name in (by_form[form] for form in formats):
        with stated(StoreError, f"{content.folder / name}: cannot be read"):
            body = (content.folder / name).read_bytes()
        if sum(map(len, given.values())) + len(body) > most_bytes:
            too_large.append(f"{name} ({len(body) / MEGABYTE:,.1f} MB)")
        else:
            given[name] = body
    return given, too_large
