"""No hour is billed twice: days that were closed in another zone, or with another beginning."""

from datetime import UTC, datetime

from goodput_billing.statement.days import Day
from goodput_queries.database import Store
from goodput_queries.errors import QueryError


def refuse_overlap(store: Store, day: Day) -> None:
    """Raise QueryError where a closed day of other bounds has billed hours of this one."""
    found = store.read(
        """select day, zone, to_ms(from_at) as from_ms, to_ms(to_at) as to_ms
        from billing.statement_days
        where to_ms(from_at) < $2 and to_ms(to_at) > $1
            and (to_ms(from_at) <> $1 or to_ms(to_at) <> $2)
        order by from_ms desc limit 1""",
        [day.from_ms, day.to_ms],
    )
    for row in found.iter_rows(named=True):
        raise QueryError(
            f"the statement of {day.date} ({day.zone}, {_span(day.from_ms, day.to_ms)}) has hours "
            f"that the closed one of {row['day']} ({row['zone']}, "
            f"{_span(row['from_ms'], row['to_ms'])}) billed. Another zone or day_starts_at of "
            "[statement] holds from a day on that begins after that."
        )


def _span(from_ms: int, to_ms: int) -> str:
    begin, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (from_ms, to_ms))
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
