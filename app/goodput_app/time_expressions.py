"""Moments as people write them: ISO 8601 with an offset, a date, or Grafana's `now-6h`, `now/d`."""

import calendar
import re
from datetime import UTC, datetime, timedelta, tzinfo

from goodput_queries.errors import QueryError

_RELATIVE = re.compile(r"now(?P<steps>(?:[+-]\d{1,6}[smhdwMy])*)(?:/(?P<unit>[smhdwMy]))?")
_STEP = re.compile(r"([+-]\d+)([smhdwMy])")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ELAPSED = {"s": "seconds", "m": "minutes", "h": "hours"}
_ON_CLOCK = {"d": "days", "w": "weeks"}
_CLEARED = {"s": {}, "m": {"second": 0}, "h": {"minute": 0, "second": 0}}


def moment_ms(text: str, now: datetime, *, is_end: bool = False, zone: tzinfo = UTC) -> int:
    """Return a moment in epoch milliseconds.

    `/d` and its like cut down to the start of the unit on the clock of the zone, or up to its end
    where the moment ends a window: a day can have 23 or 25 hours. A bare date is the start of that
    day in UTC, as an end too (windows are half-open).
    Raises QueryError for anything else, a time without an offset included: nobody guesses zones.
    """
    return round(_moment(text.strip(), now.astimezone(zone), is_end=is_end).timestamp() * 1000)


def last_week(until: datetime, first: datetime) -> tuple[datetime, datetime]:
    """Return the last week, Monday to Monday, that ends by a moment, on the clock of its zone.

    Where the data begin after that week, it is the one that goes on. first: when they begin
    """
    monday = _cut(until, "w", is_end=False)
    start = monday if first >= monday else _shift(monday, -1, "w")
    return start, _shift(start, 1, "w")


def _moment(text: str, now: datetime, *, is_end: bool) -> datetime:
    try:
        if match := _RELATIVE.fullmatch(text):
            for amount, unit in _STEP.findall(match["steps"]):
                now = _shift(now, int(amount), unit)
            return _cut(now, match["unit"], is_end=is_end) if match["unit"] else now
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise QueryError(
            f"{text!r} is not a valid time; "
            "expected like 2026-11-20T14:00Z, 2026-11-20, now-6h or now/d."
        ) from error
    if moment.tzinfo is None:
        raise QueryError(f"{text!r} has no offset; write {text}Z for UTC, or {text}+01:00.")
    return moment.astimezone(UTC)


def _shift(moment: datetime, amount: int, unit: str) -> datetime:
    """Return a moment moved by calendar units; the 31st becomes the last day of a shorter month."""
    if unit in _ELAPSED:
        moved = moment.astimezone(UTC) + timedelta(**{_ELAPSED[unit]: amount})
        return moved.astimezone(moment.tzinfo)
    if unit in _ON_CLOCK:
        return moment + timedelta(**{_ON_CLOCK[unit]: amount})
    months = moment.year * 12 + moment.month - 1 + amount * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    day = min(moment.day, calendar.monthrange(year, month)[1])
    return moment.replace(year=year, month=month, day=day)


def _cut(moment: datetime, unit: str, *, is_end: bool) -> datetime:
    """Return the start of the unit that holds the moment, or of the next; weeks begin on Monday."""
    start = moment.replace(microsecond=0)
    if unit in _CLEARED:
        start = start.replace(**_CLEARED[unit])  # type: ignore[arg-type]
    else:
        start = start.replace(hour=0, minute=0, second=0)
        if unit == "w":
            start -= timedelta(days=start.weekday())
        elif unit == "M":
            start = start.replace(day=1)
        elif unit == "y":
            start = start.replace(month=1, day=1)
    return _shift(start, 1, unit) if is_end else start
