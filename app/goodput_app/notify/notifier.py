"""Notifications in the background of `goodput serve`: decide, write, send, mark, repeat."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from goodput_app.notify import occurrences
from goodput_app.notify.plan import OWN_SOURCE, Changes, due
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_messages import outbox
from goodput_messages.outbox import Pending
from goodput_messages.retries import Sent, attempt, back_off_s
from goodput_messages.schedule import in_background
from goodput_messages.send import send, send_again
from goodput_messages.settings import MailSettings
from goodput_messages.targets import Alertmanager, AnyTarget
from goodput_queries.database import LocalStore, Store
from goodput_queries.errors import GoodputError

log = logging.getLogger(__name__)

EVERY_S = 30.0  # where nothing was built or loaded: sources get late, tickets have waited
CHANGED_S = 3.0  # between two glances at whether anything was
REST_RATIO = 9.0  # of the time that findings take: they get a tenth of a core
REST_MAX_S = 60.0  # a page is to be sent within two polls, however long findings take
STATUS_INTERVAL_S = 900.0
RESENT_PER_EXPIRY = 3
ERROR_MAX_CHARS = 500


@dataclass(frozen=True)
class Plan:
    """Who is notified. public_url: of the dashboard, for links. mail: the server of [report]."""

    targets: tuple[AnyTarget, ...]
    public_url: str | None = None
    mail: MailSettings | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    every_s: float = EVERY_S


class Notifier:
    """Notifies the targets of a plan of the findings of one database."""

    def __init__(self, store: LocalStore, plan: Plan) -> None:
        self._store = store
        self._plan = plan
        self._resent_at: dict[str, datetime] = {}
        self._delivered_at: datetime | None = None
        self._failing = _failing(store)

    def look(self) -> None:
        """Write which messages are due; raises GoodputError where the database does not answer."""
        now = self._plan.now()
        found = decided(self._store, self._plan, now)
        if any(found):
            occurrences.write(self._store, found, now)

    def deliver(self) -> None:
        """Send what is written and was not sent, and what an Alertmanager must not forget."""
        now = self._plan.now()
        if self._delivered_at is not None and now < self._delivered_at:
            # the clock was set back: what was to wait for a time by it would wait as much longer
            outbox.retry_at_once(self._store)
            self._resent_at.clear()
        self._delivered_at = now
        for target in self._plan.targets:
            waiting = outbox.pending(self._store, target.label)
            is_reached = self._send_pending(target, waiting)
            if isinstance(target, Alertmanager) and is_reached:
                self._send_again(target)

    def run(self, is_over: threading.Event) -> None:
        """Notify until it is over; an error is logged once and never ends it."""
        said = ""
        while not is_over.is_set():
            began, commits = time.monotonic(), self._store.commits
            try:
                self.look()
                took_s = time.monotonic() - began
                self.deliver()
                said = ""
            except Exception as error:
                took_s = time.monotonic() - began
                if is_over.is_set():
                    return  # the database is closed under it
                if str(error) != said:
                    said = str(error)
                    log.error(
                        "notifications: %s", said, exc_info=not isinstance(error, GoodputError)
                    )
            is_over.wait(min(REST_RATIO * took_s, REST_MAX_S))
            self._wait_for_change(is_over, commits, began + self._plan.every_s)

    def _wait_for_change(self, is_over: threading.Event, commits: int, until_s: float) -> None:
        """Wait until answers may be others than at so many commits, or until a time."""
        while commits == self._store.commits and (left_s := until_s - time.monotonic()) > 0:
            if is_over.wait(min(CHANGED_S, left_s)):
                return

    def _send_pending(self, target: AnyTarget, waiting: list[Pending]) -> bool:
        """Send in order; return whether the target did not fail.

        A message that is refused holds up those about the same findings, a target that does not
        answer holds up all.
        """
        held_up: set[str] = set()
        for one in waiting:
            now = self._plan.now()
            is_due = one.next_attempt_ms <= now.timestamp() * 1000
            if not is_due or held_up & one.keys:
                held_up |= one.keys
                continue
            sent = attempt(partial(send, one.message, target, now, self._plan.mail), one.had)
            if (error := sent.error) is not None:
                self._failed(target, one, sent, error)
                if sent.is_for_later:
                    return False
                held_up |= one.keys
            else:
                outbox.mark_sent(self._store, one, self._plan.now(), sent.recipients)
                self._answered(target)
        return not held_up

    def _send_again(self, target: Alertmanager) -> None:
        """Send an Alertmanager its open findings before it takes them for resolved."""
        now = self._plan.now()
        last = self._resent_at.get(target.label)
        if last and (now - last).total_seconds() < target.expires_s / RESENT_PER_EXPIRY:
            return
        known = occurrences.known(self._store, target.label).values()
        notices = [one.notice for one in known if one.first_id is not None]
        try:
            if notices:
                send_again(notices, target, now)
                self._answered(target)
            self._resent_at[target.label] = now
        except GoodputError as error:
            self._report(target, error)

    def _failed(self, target: AnyTarget, one: Pending, sent: Sent, error: GoodputError) -> None:
        wait_s = back_off_s(one.attempts, sent.wait_s)
        sentence = str(error)[:ERROR_MAX_CHARS]
        outbox.mark_failed(self._store, one, self._plan.now(), wait_s, sent.recipients, sentence)
        self._report(target, error)

    def _report(self, target: AnyTarget, error: GoodputError) -> None:
        """Write a failure to the status of live sources, which is a finding of its own."""
        now = self._plan.now().replace(tzinfo=None)
        if target.label not in self._failing:
            log.warning("notifications to %s: %s", target.label, error)
            self._failing[target.label] = _status(target, now)
        self._failing[target.label] = self._failing[target.label].failed(now, str(error))
        live_status.write(self._store, [self._failing[target.label]])

    def _answered(self, target: AnyTarget) -> None:
        """Take a failure back; what is in order is not listed among the live sources."""
        if (failing := self._failing.pop(target.label, None)) is not None:
            log.warning("notifications to %s are sent again.", target.label)
            now = self._plan.now().replace(tzinfo=None)
            live_status.write(self._store, [replace(failing.answered(now), retired_at=now)])


def decided(store: Store, plan: Plan, now: datetime, *, waits: bool = True) -> list[Changes]:
    """Return what is due for each target, written nowhere. waits: for others of a group."""
    seen = occurrences.seen(store, now, plan.public_url)
    if seen is None:
        return []
    found = []
    for target in plan.targets:
        unsent = {key for one in outbox.pending(store, target.label) for key in one.keys}
        of_it = replace(
            seen,
            unsent=unsent,
            sent_today=outbox.sent_today(store, target.label, now),
            waits=waits,
        )
        found.append(due(target, of_it, occurrences.known(store, target.label)))
    return found


def notifying(store: LocalStore, plan: Plan | None) -> AbstractContextManager[None]:
    """Notify in the background of a block, if a plan names targets."""
    work = None if plan is None or not plan.targets else Notifier(store, plan).run
    # what is not marked when it ends goes the next time, under the same identity
    return in_background(store, work, "notifications", "no notification is sent.")


def _failing(store: Store) -> dict[str, Status]:
    """Return the targets that an earlier process could not reach."""
    known = live_status.watched(store)
    return {one.origin: one for one in known if one.source == OWN_SOURCE and one.failures}


def _status(target: AnyTarget, now: datetime) -> Status:
    return Status(OWN_SOURCE, target.label, now, interval_s=STATUS_INTERVAL_S)
