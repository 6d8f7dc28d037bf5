"""Totals of the days around a reported one: as billed where closed, else as they would be now.

Lines are read by account: rounding gives accounts their cents before it gives them to rows, so that
every figure is the one of the day's own statement, to the cent.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction

from goodput_billing.statement import closing
from goodput_billing.statement.amounts import currency
from goodput_billing.statement.amounts.charges import Policy, charges
from goodput_billing.statement.amounts.rows import frame_of, in_cents
from goodput_billing.statement.amounts.summary import Days, Totals, totals
from goodput_billing.statement.days import Day, day_of, month_to
from goodput_billing.statement.refused_days import other_currencies
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.window import closed_days, lines_of_days
from goodput_queries.database import Store


def beside(
    store: Store,
    when: date,
    settings: StatementSettings,
    today: Totals,
    known: closing.Evidence,
    policy_of: Callable[[Day], Policy],
) -> Days:
    """Return the totals of the days that one is compared with, as far as there is evidence of them.

    policy_of: how an open day is charged. Omitted are days that are billed or priced in another
    currency: amounts of two are neither compared nor added.
    """
    beside_it = {"The day before": when - timedelta(days=1), "A week before": when - timedelta(7)}
    others = sorted({*month_to(when), *beside_it.values()} - {when})
    found = _totals_of(store, [day_of(other, settings) for other in others], known, policy_of)

    def part_of(other: date) -> Fraction:
        # a closed day whose evidence was dropped was known
        return known.part_of(day_of(other, settings)) or Fraction(1)

    before = [other for other in month_to(when) if other in found]
    return Days(
        yesterday=found.get(beside_it["The day before"]),
        week_ago=found.get(beside_it["A week before"]),
        month=[
            *(known.of_day(day_of(other, settings), found[other]) for other in before),
            known.of_day(day_of(when, settings), today),
        ],
        known_parts={name: part_of(day) for name, day in beside_it.items() if day in found},
    )


def _totals_of(
    store: Store,
    days: Sequence[Day],
    known: closing.Evidence,
    policy_of: Callable[[Day], Policy],
) -> dict[date, Totals]:
    """Return what days came to, by date: those of which anything is known in their currency."""
    closed = closed_days(store)
    found, still_open = {}, []
    for day in days:
        if (day.from_ms, day.to_ms) in closed:
            found[day.date] = _billed(store, day, policy_of(day).currency)
        elif known.part_of(day) and not other_currencies(store, day, policy_of(day).currency):
            still_open.append(day)
    for day, lines in zip(still_open, lines_of_days(store, still_open), strict=True):
        policy = policy_of(day)
        exact = frame_of(charges(lines.iter_rows(named=True), policy))
        smallest = currency.smallest_cents(policy.currency)
        found[day.date] = totals(in_cents(exact, smallest=smallest))
    return {day: of_day for day, of_day in found.items() if of_day}


def _billed(store: Store, day: Day, code: str) -> Totals:
    """Return what a closed day was billed; nothing where that was in another currency."""
    billed = store.read(
        """select min(policy) as policy, line, cluster, team,
            sum(kept.billed_cost)::decimal(18, 2) as total_cost
        from billing.statement_days as days
        inner join billing.statement_rows as kept using (rows_id)
        where to_ms(from_at) = $1 and to_ms(to_at) = $2
        group by all order by all""",
        [day.from_ms, day.to_ms],
    )
    if billed.is_empty() or closing.policy_of_text(billed["policy"][0]).currency != code:
        return {}
    return totals(billed)
