"""The time zone in which the dashboard shows times: UTC, or the one that the link names (`tz`).

The database, links and exports have UTC; texts, tables and charts are converted here and nowhere
else. Statements have their own zone. Times that are shown carry their offset from UTC, since the
clock of a zone shows some of them twice when summer time ends.
"""

from __future__ import annotations

import functools
import zoneinfo
from collections import Counter
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from goodput_app.text import units

if TYPE_CHECKING:
    from collections.abc import Sequence

PARAM = "tz"
DEFAULT = "UTC"


@functools.cache
def names() -> frozenset[str]:
    """Return the names of all time zones that this machine knows."""
    return frozenset(zoneinfo.available_timezones())


def asked() -> str:
    """Return the zone that the link names, known or not; UTC where it names none."""
    import streamlit as st  # noqa: PLC0415 -- half a second that only pages need
    from streamlit.runtime.scriptrunner import get_script_run_ctx  # noqa: PLC0415 -- as above

    if get_script_run_ctx(suppress_warning=True) is None:  # a figure outside of a page
        return DEFAULT
    return st.query_params.get(PARAM) or DEFAULT


def name() -> str:
    """Return the zone in which times are shown: UTC where the link names one that is not known."""
    wanted = asked()
    return wanted if wanted == DEFAULT or wanted in names() else DEFAULT


def zone(called: str | None = None) -> tzinfo:
    """Return a zone by its name, or the shown one."""
    called = called or name()
    return UTC if called == DEFAULT else zoneinfo.ZoneInfo(called)


def of_browser() -> str | None:
    """Return the zone of the reader's browser; None where it says none that is known."""
    import streamlit as st  # noqa: PLC0415 -- as above

    found = st.context.timezone
    return found if found in names() else None


def local(at: datetime, called: str | None = None) -> datetime:
    """Return an instant (naive UTC, or with an offset) on the clock of a zone, or the shown one."""
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(zone(called))


def offset(at: datetime, called: str | None = None) -> timedelta:
    """Return how far the clock of a zone is ahead of UTC at an instant (naive UTC)."""
    return local(at, called).utcoffset() or timedelta(0)


def suffix(at: datetime) -> str:
    """Return what stands behind a time of this offset: `UTC`, `UTC+01:00`."""
    ahead = f"{at:%z}"
    return f"{DEFAULT}{ahead[:3]}:{ahead[3:5]}" if at.utcoffset() else DEFAULT


def iso(at: datetime) -> str:
    """Return an instant (naive UTC) as links have it, whatever the zone of the page."""
    return f"{at.isoformat(timespec='milliseconds')}Z"


def moment_of(at: datetime, day: datetime) -> str:
    """Return an instant as `moment` does; the time alone where it is on the same day as another."""
    clock, other = local(at), local(day)
    return f"{clock:%H:%M:%S}" if clock.date() == other.date() else moment(at)


def moment(at: datetime | None) -> str:
    """Return an instant (naive UTC, as the database has it) as `2026-11-20 12:29:30 UTC`.

    It is in the time zone of the page.
    """
    if at is None:
        return units.NOT_KNOWN
    clock = local(at)
    return f"{clock:%Y-%m-%d %H:%M:%S} {suffix(clock)}"


def window(start: datetime, end: datetime) -> str:
    """Return a span as short as it stays clear; the offset of the page's time zone is printed."""
    first, last = local(start), local(end)
    utc_offset = suffix(last)
    if first.utcoffset() != last.utcoffset():
        begin = f"{first:%Y-%m-%d %H:%M} {suffix(first)}"
        return f"{begin} - {last:%Y-%m-%d %H:%M} {utc_offset}"
    if first.date() == last.date():
        return f"{first:%Y-%m-%d %H:%M:%S} - {last:%H:%M:%S} {utc_offset}"
    return f"{first:%Y-%m-%d %H:%M} - {last:%Y-%m-%d %H:%M} {utc_offset}"


def hours(starts: Sequence[datetime]) -> list[str]:
    """Return hours (naive UTC) as labels that differ: the hour that comes twice has its offset."""
    clock = [local(at) for at in starts]
    labels = [f"{at:%m-%d %H:%M}" for at in clock]
    counts = Counter(labels)
    return [
        label if counts[label] == 1 else f"{label} {suffix(at)}"
        for label, at in zip(labels, clock, strict=True)
    ]
