"""Instants: epoch milliseconds, as scopes have them, and naive UTC, as the database has them."""

from datetime import UTC, datetime


def utc_at(at_ms: float) -> datetime:
    """Return an instant in epoch milliseconds as naive UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None)


def epoch_ms(at: datetime) -> int:
    """Return an instant (naive: UTC) in epoch milliseconds."""
    return round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)


def iso(at_ms: int) -> str:
    """Return an instant in epoch milliseconds as ISO 8601 has it, to the second."""
    return f"{utc_at(at_ms):%Y-%m-%dT%H:%M:%SZ}"
