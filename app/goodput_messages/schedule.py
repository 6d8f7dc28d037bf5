"""When something is sent: in the background of a server, and at a time of day."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from goodput_queries.storage.database_file import DatabaseFile

log = logging.getLogger(__name__)

GRACE_S = 5.0  # for what is under way when the server ends
SET_BACK_S = 5.0  # a clock that is corrected by less was not set
NAP_MAX_S = 60.0  # a clock that is set, a machine that slept: seen within this


@contextlib.contextmanager
def in_background(
    store: DatabaseFile, work: Callable[[threading.Event], None] | None, name: str, otherwise: str
) -> Iterator[None]:
    """Run `work` in a thread during a block; the event that it is given is set at the end.

    work: None: there is nothing to do. otherwise: what does not happen with a database that is only
    read from, as a sentence for the log.
    """
    if work is not None and store.is_read_only:
        log.warning("%s is only read from: %s", store.path, otherwise)
        work = None
    if work is None:
        yield
        return
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(GRACE_S)
        if thread.is_alive():
            log.warning("still running: %s", name)


def repeat(
    look: Callable[[], float], now: Callable[[], datetime], is_over: threading.Event
) -> None:
    """Look again and again until it is over; look: returns the seconds until the next time."""
    while not is_over.is_set():
        wait_s = look()
        again_at = now().timestamp() + wait_s
        # where the clock was set back more than that is left: it looks at once
        while 0 < (left_s := again_at - now().timestamp()) < wait_s + SET_BACK_S:
            if is_over.wait(min(left_s, NAP_MAX_S)):
                return


def last_time(at: time, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the latest moment up to now, in UTC, at which clocks in a zone showed a time of day.

    Where they skip it that moment is as much later; where they show it twice it is the first.
    """
    return max(moment for moment in _times(at, zone, now) if moment <= now)


def next_time(at: time, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the first such moment after now."""
    return min(moment for moment in _times(at, zone, now) if moment > now)


def _times(at: time, zone: ZoneInfo, now: datetime) -> Iterator[datetime]:
    today = now.astimezone(zone).date()
    for days in range(-2, 3):
        yield datetime.combine(today + timedelta(days), at, zone).astimezone(UTC)
