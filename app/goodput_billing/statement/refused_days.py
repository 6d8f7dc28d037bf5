"""Days without a statement: whose hours are billed already, or whose prices are mixed."""

from datetime import UTC, datetime

from goodput_billing.statement.days import Day
from goodput_queries.database import Store
from goodput_queries.errors import QueryError

_NAMED = " union all ".join(
    f"""select '{table}' as source, currency from raw.{table}
    where coalesce(to_ms(valid_from_at), 0) < $2 and coalesce(to_ms(valid_to_at), $1 + 1) > $1"""
    for table in ("rates", "tariffs", "budgets")
)


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


def other_currencies(store: Store, day: Day, code: str) -> list[tuple[str, str]]:
    """Return what holds on a day and names another currency: (source, code), in order."""
    found = store.read(
        f"select distinct source, currency from ({_NAMED}) where currency <> $3 order by all",
        [day.from_ms, day.to_ms, code],
    )
    return [(source, named) for source, named in found.rows()]


def refuse_other_currencies(store: Store, day: Day, code: str) -> None:
    """Raise QueryError where prices, tariffs or budgets of a day are in another currency."""
    if found := other_currencies(store, day, code):
        codes = ", ".join(f"{source} in {named}" for source, named in found)
        raise QueryError(
            f"the statement of {day.date} is in {code}, but there are {codes}; nothing is "
            "converted. Ingest them in one currency and name it as 'currency' of [statement] in "
            "goodput.toml."
        )
