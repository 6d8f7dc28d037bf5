"""The days of a statement: cut in its own zone, so that they may have 23 or 25 hours."""

import calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from goodput_billing.statement.settings import StatementSettings
from goodput_queries.scope import Scope

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Day:
    """A day `[from_ms, to_ms)` in epoch ms; `date` is the one on which it begins in `zone`."""

    date: date
    zone: str
    from_ms: int
    to_ms: int

    @property
    def scope(self) -> Scope:
        """Return the window of the marts."""
        return Scope(from_ms=self.from_ms, to_ms=self.to_ms)

    @property
    def hours(self) -> float:
        """Return its length: 24, or 23 or 25 where the clocks change."""
        return (self.to_ms - self.from_ms) / HOUR_MS


def day_of(when: date, settings: StatementSettings) -> Day:
    """Return the day that begins on a date."""
    zone, start = settings.zone_info(), settings.start()

    def begin(on: date) -> int:
        return round(datetime.combine(on, start, zone).timestamp() * 1000)

    return Day(when, settings.zone, begin(when), begin(when + timedelta(days=1)))


def month_to(when: date) -> list[date]:
    """Return the dates from the first of the month to this one."""
    return [when.replace(day=day) for day in range(1, when.day + 1)]


def month_ms(when: date, settings: StatementSettings) -> int:
    """Return how long the month of a date is, as its days are cut."""
    first = when.replace(day=1)
    return (
        day_of(first + timedelta(days=days_in_month(first)), settings).from_ms
        - day_of(first, settings).from_ms
    )


def days_in_month(when: date) -> int:
    """Return how many days the month of a date has."""
    return calendar.monthrange(when.year, when.month)[1]
