"""Notifications on the Data page: who sees how they fare, and who may send a test message."""

from datetime import UTC, datetime

import polars as pl

from goodput_app.access import audit, rows
from goodput_app.access.identity import Action
from goodput_app.notify import overview
from goodput_app.settings import settings
from goodput_messages.send import send, trial
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError


def receivers(store: Store) -> pl.DataFrame:
    """Return how each target of the settings fares: `overview.RECEIVERS`."""
    rows.require_all_teams("notifications")
    return overview.receivers(store, settings().notify)


def waiting(store: Store) -> pl.DataFrame:
    """Return the messages that are still to be sent: `overview.WAITING`."""
    rows.require_all_teams("notifications")
    return overview.waiting(store, settings().notify)


def send_test(store: Store, label: str, user: str) -> None:
    """Send a test message to a target. user: whom a target that is the owner of a job writes to.

    Raises NotAllowedError for somebody without the role, GoodputError where it is not taken.
    """
    rows.require_all_teams("notifications")
    target = next((one for one in settings().notify if one.label == label), None)
    with audit.acting(store, Action.TEST_NOTIFICATION, label):
        if target is None:
            raise GoodputError(f"there is no target {label!r} under [[notify]] in goodput.toml.")
        now = datetime.now(UTC)
        send(trial(target, now, user), target, now, settings().report.mail)
