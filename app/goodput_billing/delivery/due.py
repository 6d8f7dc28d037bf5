"""Which days are due for delivery, and when `goodput serve` looks."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from goodput_billing.delivery import archive
from goodput_billing.delivery.archive import PastStatement
from goodput_billing.delivery.deliver import Outcome, Plan, channels, is_owed, send_statement
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, NoEvidenceError

LOOKED_BACK_DAYS = 31  # what was not delivered so long is left to who asks for the day
ASKED_AGAIN_DAYS = 7  # closed days that are computed again: late evidence makes a correction


def last_day(settings: StatementSettings, now: datetime) -> date:
    """Return the last day that has ended."""
    when = now.astimezone(settings.zone_info()).date() + timedelta(days=1)
    while day_of(when, settings).to_ms > now.timestamp() * 1000:
        when -= timedelta(days=1)
    return when


def deliver_due(store: Store, plan: Plan, until: date, *, asks_again: bool = True) -> list[Outcome]:
    """Deliver what is due up to a day, oldest first; the caller holds the delivery_lock.

    The first time ever that is the last day that can be closed, and no other.
    """
    index = {one.date: one for one in archive.past_statements(plan.folder)}
    if not index:
        return _first(store, plan, until)
    wanted = due_days(index, until, channels(plan.report), asks_again=asks_again)
    return [found for when in wanted if (found := _delivered(store, when, plan)) is not None]


def due_days(
    index: Mapping[date, PastStatement], until: date, names: Sequence[str], *, asks_again: bool
) -> list[date]:
    """Return the days up to one that are to be made, for these channels.

    Of the last 31 days: those after the newest in the index, open ones, those that a channel still
    has to get. Of the last seven, from the oldest in the index on: those that were missed and,
    where asks_again, all.
    """

    def is_due(when: date) -> bool:
        is_recent = when > until - timedelta(ASKED_AGAIN_DAYS)
        entry = index.get(when)
        if entry is None:
            return when > max(index) or (is_recent and when > min(index))
        is_left = not entry.is_closed or any(is_owed(entry, name) for name in names)
        return is_left or (is_recent and asks_again)

    return [when for when in _dates(until, LOOKED_BACK_DAYS) if is_due(when)]


def _dates(until: date, count: int) -> list[date]:
    return [until - timedelta(days) for days in reversed(range(count))]


def _first(store: Store, plan: Plan, until: date) -> list[Outcome]:
    """Deliver the last closed day; later ones are open."""
    found: list[Outcome] = []
    for when in reversed(_dates(until, ASKED_AGAIN_DAYS)):
        if (outcome := _delivered(store, when, plan)) is not None:
            found.insert(0, outcome)
            if outcome.entry is not None:
                break
    return found


def _delivered(store: Store, when: date, plan: Plan) -> Outcome | None:
    """Return what became of a day; None for one without evidence. A bad day stops no other."""
    try:
        made = statement(store, when, plan.statement)
    except NoEvidenceError:
        return None
    except GoodputError as error:
        return Outcome(when, None, str(error), errors=(str(error),))
    return send_statement(made, plan)
