"""Delivery of statements at a time of day, in the background of `goodput serve`.

At that time, and at the start for a time that was missed: all that is due. While a day is not
closed or a channel failed: again every quarter of an hour, those days alone.
"""

import logging
import threading
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, time
from functools import partial

from goodput_billing.delivery.archive import past_statements
from goodput_billing.delivery.deliver import Outcome, Plan, delivery_lock
from goodput_billing.delivery.due import deliver_due, last_day
from goodput_messages.schedule import in_background, last_time, next_time, repeat
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError

log = logging.getLogger(__name__)

AGAIN_S = 900.0


def delivering(store: LocalStore, plan: Plan | None) -> AbstractContextManager[None]:
    """Deliver statements in the background of a block, if a plan names a time of day."""
    work = None
    if plan is not None and (at := plan.report.time()) is not None:
        work = partial(_deliver_daily, store, plan, at)
    # what has not gone out when it ends goes the next time, by the index
    otherwise = "no day is closed and no statement goes out."
    return in_background(store, work, "delivery of statements", otherwise)


def _deliver_daily(store: LocalStore, plan: Plan, at: time, is_over: threading.Event) -> None:
    repeat(Timetable(store, replace(plan, wait=is_over.wait), at).look, plan.now, is_over)


class Timetable:
    """Deliveries of the last time of day, and what is left of them."""

    def __init__(self, store: LocalStore, plan: Plan, at: time) -> None:
        self._store = store
        self._plan = plan
        self._at = at
        self._zone = plan.statement.zone_info()
        self._asked_at: datetime | None = None
        self._settled_at: datetime | None = None
        self._logged: tuple[str, ...] = ()

    def look(self) -> float:
        """Deliver what is due; return the seconds until the next check."""
        now = self._plan.now()
        until_next_s = (next_time(self._at, self._zone, now) - now).total_seconds()
        moment = last_time(self._at, self._zone, now)
        if self._settled_at == moment or self._deliver(moment):
            self._settled_at = moment
            return until_next_s
        return min(AGAIN_S, until_next_s)

    def _deliver(self, moment: datetime) -> bool:
        """Deliver what was due at a time; return whether all of it is done."""
        until = last_day(self._plan.statement, moment)
        try:
            with delivery_lock(self._plan.folder):
                self._store.build()
                outcomes = deliver_due(
                    self._store,
                    replace(self._plan, away=set()),
                    until,
                    asks_again=self._asked_at != moment,
                )
        except GoodputError as error:
            self._log_errors([str(error)])
            return False
        except Exception:
            log.exception("statements were not delivered")
            return False
        self._asked_at = moment
        self._log(outcomes)
        closed = {one.date for one in past_statements(self._plan.folder) if one.is_closed}
        return until in closed and all(outcome.is_settled for outcome in outcomes)

    def _log(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.done:
                log.info("statement of %s: %s", outcome.when, ", ".join(outcome.done))
        self._log_errors(
            [f"statement of {o.when}: {error}" for o in outcomes for error in o.errors]
        )

    def _log_errors(self, errors: list[str]) -> None:
        for error in errors:
            if error not in self._logged:  # once, not every quarter of an hour
                log.error("%s", error)
        self._logged = tuple(errors)
