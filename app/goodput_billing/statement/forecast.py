"""What a month will come to: month to date over the hours that evidence covers, with its interval.

Each cluster's cost goes on at its mean cost of a covered hour for the hours of the month without
evidence, past and to come. The interval is what that time would cost at the cheapest and at the
most expensive day so far. With less than one covered day there is no forecast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from goodput_billing.statement.amounts.rounding import nearest
from goodput_billing.statement.amounts.summary import CoveredDay

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class Forecast:
    """Month to date, what the month will come to, and the covered time that this rests on.

    month_cost: spent so far. expected_cost, low_cost, high_cost: by the end of the month; None
    where less than a day is covered, the bounds also where there is one day alone. covered_ms: of
    the cluster with the least, where there are several.
    """

    month_cost: Decimal
    expected_cost: Decimal | None
    low_cost: Decimal | None
    high_cost: Decimal | None
    covered_ms: int

    @property
    def basis(self) -> str:
        """Return the coverage in words: `36.5 covered hours`, or why there is no forecast."""
        hours = f"{self.covered_ms / HOUR_MS:,.1f} covered hours"
        return hours if self.expected_cost is not None else f"{hours}: less than a day"


def forecast(
    days: Sequence[CoveredDay], month_ms: int, account: str, cluster: str | None = None
) -> Forecast:
    """Return the forecast of an account, on one cluster or on all that charged it."""
    if cluster is not None:
        return _on(days, month_ms, account, cluster)
    clusters = {key[0] for day in days for key in day.totals if key[1] == account}
    parts = [_on(days, month_ms, account, one) for one in sorted(clusters)]
    return Forecast(
        sum((part.month_cost for part in parts), Decimal("0.00")),
        _sum([part.expected_cost for part in parts]),
        _sum([part.low_cost for part in parts]),
        _sum([part.high_cost for part in parts]),
        min((part.covered_ms for part in parts), default=0),
    )


def _on(days: Sequence[CoveredDay], month_ms: int, account: str, cluster: str) -> Forecast:
    of_days = [
        (day.totals.get((cluster, account), Decimal("0.00")), day.covered_ms.get(cluster, 0))
        for day in days
    ]
    spent = sum((cost for cost, _ in of_days), Decimal("0.00"))
    covered_ms = sum(ms for _, ms in of_days)
    if covered_ms < DAY_MS:
        return Forecast(spent, None, None, None, covered_ms)
    left_ms = max(month_ms - covered_ms, 0)
    # a day that is covered for less than half of it may be a night: it sets no bound
    rates = [Fraction(cost) / ms for cost, ms in of_days if 2 * ms >= DAY_MS]
    low, high = (min(rates), max(rates)) if len(rates) > 1 else (None, None)
    mean = Fraction(spent) / covered_ms

    def by_the_end(rate: Fraction | None) -> Decimal | None:
        return None if rate is None else _cents(Fraction(spent) + rate * left_ms)

    return Forecast(
        spent,
        by_the_end(mean),
        by_the_end(None if low is None else min(low, mean)),
        by_the_end(None if high is None else max(high, mean)),
        covered_ms,
    )


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal("0.00")) if known and len(known) == len(amounts) else None


def _cents(amount: Fraction) -> Decimal:
    return Decimal(nearest(amount.numerator * 100, amount.denominator)).scaleb(-2)
