"""What a page shows: the type that pages, panels and the bar on top of them share, and windows."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from goodput_app.page_links import filters_of
from goodput_queries.scope import Scope

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class View:
    """What a page shows: its scope, and the window as people read it (naive UTC).

    asked: the window's start and end as a link may name them
    """

    scope: Scope
    start: datetime
    end: datetime
    now: datetime
    as_of: datetime
    mode: str
    problem: str | None = None
    asked: tuple[str, str] = ("", "now")

    @property
    def window(self) -> tuple[datetime, datetime]:
        """Return start and end."""
        return self.start, self.end

    @property
    def filters(self) -> dict[str, str]:
        """Return the filters that are set, by parameter."""
        return filters_of(self.scope)


def of_data(
    start: datetime, end: datetime, first: datetime, as_of: datetime
) -> tuple[datetime, datetime]:
    """Return the part of a window that has data; the window where it has none."""
    if start < as_of and end > first:
        return max(start, first), min(end, as_of)
    return start, end


def in_whole_hours(start: datetime, end: datetime, until: Any) -> tuple[datetime, datetime]:
    """Return the window in whole hours before `until`, as no more is known of them; never empty."""
    first, last = (_next_hour(t) if until is not None and t < until else t for t in (start, end))
    return (first if first < last else first - HOUR), last


def _next_hour(at: datetime) -> datetime:
    hour = at.replace(minute=0, second=0, microsecond=0)
    return hour + HOUR if hour < at else hour
