"""Another price: what the same held time would be charged, and what a useful hour costs."""

from decimal import Decimal

from goodput_scenarios.scenario import Field, Formula, Scenario, Values, Worked, number

FIELDS = (
    Field(
        "new_price_per_gpu_h",
        "New price",
        "USD",
        "Of a GPU-hour, before any factor (a discount, a QOS)",
        most=Decimal(10) ** 6,
    ),
    Field("price_per_gpu_h", "Price now", "USD", "Mean list price of allocated time"),
    Field("factor", "Factor on the price", "x", "Mean over allocated time", assumed=Decimal(1)),
    Field("held_gpu_h", "Allocated", "GPU-h", "In the window, with a price now"),
    Field("productive_gpu_h", "Useful", "GPU-h", "Of it; the upper end: what may be it too"),
)


def _charge(values: Values) -> Worked:
    after = values["held_gpu_h"] * values["new_price_per_gpu_h"] * values["factor"]
    return after, (
        f"{number(values['held_gpu_h'], 1)} GPU-h x {number(values['new_price_per_gpu_h'], 4)} USD "
        f"x {number(values['factor'], 4)} = {number(after)} USD"
    )


def _difference(values: Values) -> Worked:
    new, old = values["new_price_per_gpu_h"], values["price_per_gpu_h"]
    difference = values["held_gpu_h"] * (new - old) * values["factor"]
    return difference, (
        f"{number(values['held_gpu_h'], 1)} GPU-h x ({number(new, 4)} - {number(old, 4)}) USD x "
        f"{number(values['factor'], 4)} = {number(difference)} USD"
    )


def _each(values: Values) -> Worked:
    after, _ = _charge(values)
    productive = values["productive_gpu_h"]
    if after is None or productive.lo <= 0:
        return None, "no useful hour is known"
    each = after / productive
    return each, f"{number(after)} USD / {number(productive, 1)} GPU-h = {number(each, 4)} USD"


_OF_CHARGE = ("new_price_per_gpu_h", "held_gpu_h", "factor")
PRICES = Scenario(
    "prices",
    "Prices",
    "What would the same time have been charged at another price?",
    FIELDS,
    (
        Formula(
            "charge_cost",
            "Charge for allocated time",
            "USD",
            "allocated x new price x factor",
            _OF_CHARGE,
            _charge,
            is_headline=True,
        ),
        Formula(
            "difference_cost",
            "Difference",
            "USD",
            "allocated x (new price - price now) x factor",
            (*_OF_CHARGE, "price_per_gpu_h"),
            _difference,
            is_headline=True,
        ),
        Formula(
            "useful_hour_cost",
            "Per useful GPU-hour",
            "USD",
            "charge / useful GPU-hours",
            (*_OF_CHARGE, "productive_gpu_h"),
            _each,
            is_headline=True,
        ),
    ),
)
