"""Prices, tariffs and budgets of a day that are in another currency than its statement."""

from goodput_billing.statement.days import Day
from goodput_queries.database import Store
from goodput_queries.errors import QueryError

_NAMED = " union all ".join(
    f"""select '{table}' as source, currency from raw.{table}
    where coalesce(to_ms(valid_from_at), 0) < $2 and coalesce(to_ms(valid_to_at), $1 + 1) > $1"""
    for table in ("rates", "tariffs", "budgets")
)


def find(store: Store, day: Day, code: str) -> list[tuple[str, str]]:
    """Return what holds on a day and names another currency: (source, code), in order."""
    found = store.read(
        f"select distinct source, currency from ({_NAMED}) where currency <> $3 order by all",
        [day.from_ms, day.to_ms, code],
    )
    return [(source, named) for source, named in found.rows()]


def refuse(store: Store, day: Day, code: str) -> None:
    """Raise QueryError where prices, tariffs or budgets of a day are in another currency."""
    if found := find(store, day, code):
        codes = ", ".join(f"{source} in {named}" for source, named in found)
        raise QueryError(
            f"the statement of {day.date} is in {code}, but there are {codes}; nothing is "
            "converted. Ingest them in one currency and name it as 'currency' of [statement] in "
            "goodput.toml."
        )
