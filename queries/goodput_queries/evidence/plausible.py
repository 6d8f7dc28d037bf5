"""Plausible time: the bounds for times of observation.

The headers of the raw tables list the columns: `observed` ones are times of observation, `planned`
ones may be in the future.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

EARLIEST: Final = datetime(2000, 1, 1)  # noqa: DTZ001 -- as all moments of the store: naive UTC
AHEAD_MAX: Final = timedelta(hours=1)  # a reader's clock and a source's may differ by so much
BULK_GAP_DAYS: Final = 400  # the rows of a file have no longer gap than this


def before(column: str, earliest: datetime) -> str:
    """Return the reject reason of a row that is too early."""
    return f"{column} is before {earliest:%Y-%m-%d}, the earliest plausible time"


def ahead(column: str) -> str:
    """Return the reject reason of a row in the future."""
    return (
        f"{column} is more than 1 h ahead of the clock of the machine that read it: check the "
        "clocks of both"
    )


def far(column: str) -> str:
    """Return the reject reason of a row far from the other times of its file."""
    return f"{column} is more than {BULK_GAP_DAYS} days from all other times of the file"


def bulk_of(days: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the first and the last day of the bulk: the range around the median without long gaps.

    days: how many stamps each day has
    """
    half, passed = sum(days.values()) / 2, 0
    bulk: tuple[int, int] | None = None
    for day in sorted(days):
        if bulk is not None and day - bulk[1] > BULK_GAP_DAYS and passed >= half:
            break
        bulk = (bulk[0], day) if bulk is not None and day - bulk[1] <= BULK_GAP_DAYS else (day, day)
        passed += days[day]
    return bulk


def utc_now() -> datetime:
    """Return the moment by this machine's clock, naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
