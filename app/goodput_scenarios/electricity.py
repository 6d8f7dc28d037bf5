"""Power, energy and what it costs: what several scenarios ask for alike."""

from goodput_scenarios.scenario import HOURS_PER_YEAR, Worked, number
from goodput_scenarios.span import Span

W_PER_KW = Span.of(1000)
YEAR_H = Span.of(HOURS_PER_YEAR)


def kilowatts(gpus: Span, power_w: Span) -> Span:
    """Return the power of so many GPUs in kW."""
    return gpus * power_w / W_PER_KW


def priced(energy_kwh: Span, price_per_kwh: Span) -> Worked:
    """Return what so much energy costs, and how that comes about."""
    found = energy_kwh * price_per_kwh
    return found, (
        f"{number(energy_kwh, 0)} kWh x {number(price_per_kwh, 4)} USD = {number(found, 0)} USD"
    )
