"""What a policy makes of time whose owner is inferred, and of allocated time on no known GPU."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

INFERRED, UNPLACED = "inferred", "unplaced"
HELD_LINES = ("usage", INFERRED, UNPLACED)
WORDS = {
    INFERRED: " (ownership inferred)",
    UNPLACED: " (on no known GPU)",
}
NOT_CHARGED = " (ownership inferred: not charged)"
_ZERO = Decimal(0)
_OWNER = ("team", "user_name", "run_key", "run_id", "job_name", "partition", "qos")
_MEASURES = ("gpu_ms", "energy_mj", "measured_ms", "metered_mj_price", "untariffed_mj", "wall_mj")
_PLACE = (
    "cluster",
    "gpu_model",
    "mig_profile",
    "list_price_per_gpu_h",
    "factor",
    "price_per_gpu_h",
)


def lines_under(
    lines: Iterable[Mapping[str, Any]], *, charge_inferred: bool | None
) -> Iterator[Mapping[str, Any]]:
    """Yield `marts.statement_lines` rows as a policy charges them.

    charge_inferred: whether inferred time has its price, else 0; None: of a day that was closed
    before ownership was inferred: then it was idle time, and unplaced time was omitted.
    """
    if charge_inferred is None:
        yield from _as_idle(lines)
        return
    for row in lines:
        yield row if charge_inferred or row["line"] != INFERRED else _free_of_charge(row)


def words_of(row: Mapping[str, Any]) -> str:
    """Return the remark on a line; empty for ordinary lines."""
    if row["line"] == INFERRED and row["factor"] == 0:
        return NOT_CHARGED
    return WORDS.get(row["line"], "")


def _free_of_charge(row: Mapping[str, Any]) -> dict[str, Any]:
    prices = dict.fromkeys(("list_price_per_gpu_h", "factor", "price_per_gpu_h"), _ZERO)
    metered = None if row["metered_mj_price"] is None else _ZERO
    return {**row, **prices, "metered_mj_price": metered}


def _as_idle(lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    idle: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in lines:
        if row["line"] not in (INFERRED, "idle"):
            if row["line"] != UNPLACED:
                yield row
            continue
        others = {
            name: 0
            for name, value in row.items()
            if name.endswith("_ms") and name not in _MEASURES and value is not None
        }
        alike = {**row, **others, **dict.fromkeys(_OWNER), "line": "idle", "job_runs": 0}
        total = idle.setdefault(tuple(row[name] for name in _PLACE), alike)
        if total is not alike:
            for name in _MEASURES:
                known = [value for value in (total[name], row[name]) if value is not None]
                total[name] = sum(known) if known else None
    yield from idle.values()
