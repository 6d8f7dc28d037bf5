"""What a site decides about its statements: `[statement]` in goodput.toml."""

from datetime import time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from goodput_billing.statement.amounts import currency
from goodput_billing.statement.amounts.charges import IDLE_POLICIES
from goodput_billing.statement.amounts.credit_rules import CreditRule, refuse_twice
from goodput_messages.checks import refuse_others
from goodput_queries.errors import GoodputError


class StatementSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How days are cut and charged, and who the statement is from.

    zone, day_starts_at: where a day begins, such as America/New_York and 17:00; a day bears the
    date on which it begins. lateness_h: a day closes when the evidence of its clusters reaches this
    far beyond its end. idle_policy: none, proportional, uniform or by_quota.
    credit_infra_failures: give back what failed infrastructure cost. credits: give back parts of a
    closed day on the next statement, instead. charge_inferred: charge time
    whose owner only job events, processes or activity indicate. showback: nothing is
    billed, the figures are the same. currency: what rate card, tariffs and budgets are written in,
    an ISO 4217 code; nothing is converted. organisation, site: who runs the cluster, and where.
    """

    zone: str = "UTC"
    day_starts_at: str = "00:00"
    lateness_h: int = 6
    idle_policy: str = "none"
    credit_infra_failures: bool = False
    charge_inferred: bool = False
    showback: bool = False
    currency: str = currency.DEFAULT
    organisation: str = "Our organisation"
    site: str = ""
    credits: tuple[CreditRule, ...] = ()

    def __post_init__(self) -> None:
        refuse_others("statement.idle_policy", [self.idle_policy], IDLE_POLICIES)
        if self.lateness_h < 0:
            raise GoodputError("'statement.lateness_h' is below 0, expected hours.")
        if self.currency not in currency.CODES:
            raise GoodputError(
                f"'statement.currency' is {self.currency!r}, expected an ISO 4217 code like EUR."
            )
        if not self.organisation.strip():
            raise GoodputError("'statement.organisation' is empty, expected who sends statements.")
        refuse_twice(self.credits, credits_infra_failures=self.credit_infra_failures)
        self.zone_info()
        self.start()

    def zone_info(self) -> ZoneInfo:
        """Return the zone of the days."""
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise GoodputError(
                f"'statement.zone' is {self.zone!r}, expected a zone like Europe/Berlin."
            ) from error

    def start(self) -> time:
        """Return the time of day at which a day begins."""
        try:
            start = time.fromisoformat(self.day_starts_at)
            if start.tzinfo is not None:
                raise ValueError("the zone has a setting of its own")
        except ValueError as error:
            raise GoodputError(
                f"'statement.day_starts_at' is {self.day_starts_at!r}, expected like 17:00."
            ) from error
        return start
