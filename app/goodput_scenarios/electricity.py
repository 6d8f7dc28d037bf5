"""Power, energy and what it costs: what several scenarios ask for alike."""

from decimal import Decimal

from goodput_scenarios.scenario import HOURS_PER_YEAR, Field, Worked, number
from goodput_scenarios.span import Span

W_PER_KW = Span.of(1000)
YEAR_H = Span.of(HOURS_PER_YEAR)
TARIFF = Field(
    "price_per_kwh",
    "Price of a kWh",
    "USD/kWh",
    "Per kWh of the GPUs' own counters: tariff x PUE x server / GPU energy",
    most=Decimal(1000),
)
WORTH = Field(
    "cost_per_productive_gpu_h",
    "Worth of a useful GPU-hour",
    "USD",
    "What it costs you now, unless you know better",
    most=Decimal(10) ** 6,
)
USE = Field(
    "use_ratio",
    "Share of GPU time that is useful",
    "of capacity",
    "Retained step time; its upper end contains what the evidence leaves open",
    most=Decimal(1),
)


def kilowatts(gpus: Span, power_w: Span) -> Span:
    """Return the power of so many GPUs in kW."""
    return gpus * power_w / W_PER_KW


def priced(energy_kwh: Span, price_per_kwh: Span) -> Worked:
    """Return what so much energy costs, and how that comes about."""
    found = energy_kwh * price_per_kwh
    return found, (
        f"{number(energy_kwh, 0)} kWh x {number(price_per_kwh, 4)} USD = {number(found, 0)} USD"
    )
