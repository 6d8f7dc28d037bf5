"""A mail server and a web server that take statements; a database with days to deliver."""

from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest
from tests.app.receivers import Clock, mail_settings, web

from goodput_billing.delivery.deliver import Plan
from goodput_billing.delivery.settings import ReportSettings, WebhookSettings
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.rows import digest
from goodput_billing.statement.closing import Booking
from goodput_billing.statement.settings import StatementSettings

POLICY = Policy("none", False, {})


@pytest.fixture
def secure_hook(tls):
    """Give a web server behind a certificate of its own."""
    with web(tls) as running:
        yield running


@pytest.fixture
def closed(make, lines):
    """Give the statement of a closed day."""
    return booked(make(lines, POLICY))


@pytest.fixture
def corrected(make, lines):
    """Give the same day with a correction: account nlp held ten more hours."""
    held = {"gpu_ms": 36_000_000, "energy_mj": None, "metered_mj_price": None}
    more = make([lines[0] | held], POLICY)
    first = booked(make(lines, POLICY))
    second = booked(more, number=1).bookings[0]
    both = pl.concat([first.rows, more.rows.with_columns(pl.lit(1, pl.Int32).alias("correction"))])
    return replace(first, bookings=[*first.bookings, second], rows=both)


def booked(made, number=0):
    """Return an open statement as it is once its day is closed."""
    rows = made.rows.drop("correction")
    booking = Booking(number, made.closes_ms, digest(rows), made.policy, rows, rows)
    return replace(made, bookings=[booking])


@pytest.fixture
def clock():
    """Give a clock at 20 November, 15 h."""
    return Clock(datetime(2026, 11, 20, 15, tzinfo=UTC))


@pytest.fixture
def plan(tmp_path, clock, post, hook):
    """Give a plan: two formats, mail and webhook."""
    report = ReportSettings(
        formats=("csv", "html"),
        files_url="https://files.example/gpu",
        mail=mail_settings(post, attach=("csv",)),
        webhook=WebhookSettings(url=f"{hook.url}/secret-path", timeout_s=5),
    )
    return Plan(tmp_path / "out", report, StatementSettings(), clock.wait, clock.now)
