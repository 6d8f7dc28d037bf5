"""A comparison of two sides: measures, what they ran with, GPU time, verdicts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodput_scenarios.comparison.gate import Limit, Verdict, judged
from goodput_scenarios.comparison.sides import Measured, Reader, Side, measured
from goodput_scenarios.comparison.speeds import Speed, speeds

VALUES_SHOWN = 5  # of an attribute that differs among the runs of a side
SENTENCES_MAX = 3
MEASURES = {
    "measure": pl.String,
    "workload": pl.String,
    "unit": pl.String,
    "a": pl.Float64,
    "b": pl.Float64,
    "change_ratio": pl.Float64,
    "low_ratio": pl.Float64,
    "high_ratio": pl.Float64,
    "count_a": pl.Int64,
    "count_b": pl.Int64,
    "effective_a": pl.Float64,
    "effective_b": pl.Float64,
    "spread_a_ratio": pl.Float64,
    "spread_b_ratio": pl.Float64,
    "counted": pl.String,
    "not_comparable": pl.String,
}


@dataclass(frozen=True)
class Comparison:
    """Two sides against each other.

    measures: a row a measure (see MEASURES): value of A and B, change as a share of A with its 95 %
    interval, where it has one, counts and spread of what was counted
    attributes: attribute, label, a, b, is_different
    ledger: category, label, colour, kind, a_ratio, b_ratio, change_ratio: shares of allocated time
    notes: what to know before one believes it
    verdicts: of each limit
    """

    a: Measured
    b: Measured
    speeds: list[Speed]
    measures: pl.DataFrame
    attributes: pl.DataFrame
    ledger: pl.DataFrame
    notes: list[str]
    verdicts: list[tuple[Limit, Verdict]]

    @property
    def is_failed(self) -> bool:
        """Whether a gate did not pass."""
        return any(verdict.outcome != "passed" for _, verdict in self.verdicts)


def compared(
    read: Reader, a: Side, b: Side, limits: Sequence[Limit] = (), *, extent: str = ""
) -> Comparison:
    """Return the comparison of B with A.

    extent: the time range of all data, in brackets, for a side without runs.
    """
    of_a, of_b = measured(read, a), measured(read, b)
    found = speeds(of_a, of_b)
    return Comparison(
        of_a,
        of_b,
        found,
        measures(of_a, of_b, found),
        attributes(of_a, of_b, found),
        ledger(of_a, of_b),
        list(_notes(of_a, of_b, found, extent)),
        [(limit, judged(limit, found)) for limit in limits],
    )


def measures(a: Measured, b: Measured, found: Iterable[Speed]) -> pl.DataFrame:
    """Return the measures of two sides, as `Comparison` has them."""
    rows: list[dict[str, Any]] = []
    for speed in found:
        rows += _of_speed(speed)
    rows += [
        _exact("Goodput of allocated time", "ratio", _useful(a), _useful(b)),
        _exact("Allocated GPU time", "GPU-h", a.held_ms / 3.6e6, b.held_ms / 3.6e6),
        _exact("Allocated cost", "currency", _total(a.ledger, "cost"), _total(b.ledger, "cost")),
    ]
    for label, column in (("by GPU counters", "energy_kwh"), ("at node meters", "wall_kwh")):
        rows.append(
            _exact(f"Energy {label}", "kWh", _total(a.energy, column), _total(b.energy, column))
        )
    kept = [row for row in rows if row["a"] is not None or row["b"] is not None]
    return pl.DataFrame(kept, schema=MEASURES)


def attributes(a: Measured, b: Measured, found: Sequence[Speed]) -> pl.DataFrame:
    """Return what the runs ran with that are compared, in the order of reference.run_attributes.

    Where no speed is, of all runs.
    """
    counted = (
        {run for speed in found for run in speed.runs_a},
        {run for speed in found for run in speed.runs_b},
    )
    sides = [
        _values(
            side.attributes.filter(pl.col("run_key").is_in(runs)) if runs else side.attributes, name
        )
        for name, side, runs in zip("ab", (a, b), counted, strict=True)
    ]
    return (
        sides[0]
        .join(sides[1], on=["attribute", "label", "place"], how="full", coalesce=True)
        .with_columns(is_different=pl.col("a").ne_missing(pl.col("b")))
        .sort("place")
        .drop("place")
    )


def ledger(a: Measured, b: Measured) -> pl.DataFrame:
    """Return the share of allocated time of each category, the largest change first."""
    keys = ["category", "label", "colour", "kind"]
    sides = [
        side.ledger.select(*keys, (pl.col("gpu_ms") / side.held_ms).alias(name))
        for name, side in (("a_ratio", a), ("b_ratio", b))
    ]
    return (
        sides[0]
        .join(sides[1], on=keys, how="full", coalesce=True)
        .with_columns(pl.col("a_ratio", "b_ratio").fill_null(0.0))  # no time of it: measured
        .with_columns(change_ratio=pl.col("b_ratio") - pl.col("a_ratio"))
        .sort(pl.col("change_ratio").abs(), "category", descending=[True, False])
    )


def _of_speed(speed: Speed) -> list[dict[str, Any]]:
    rows = []
    for name, unit, found in (
        ("Speed", f"{speed.unit}/s", speed.difference),
        ("Step time", "s", speed.step_time),
    ):
        if found is None:
            continue
        values = [found.a.speed, found.b.speed]
        if name == "Step time":
            values = [1 / value for value in values]
        rows.append(
            {
                **dict.fromkeys(MEASURES),
                "measure": name,
                "workload": speed.workload,
                "unit": unit,
                "a": values[0],
                "b": values[1],
                "change_ratio": found.change_ratio,
                "low_ratio": found.low_ratio,
                "high_ratio": found.high_ratio,
                "count_a": found.a.count,
                "count_b": found.b.count,
                "effective_a": found.a.effective_count,
                "effective_b": found.b.effective_count,
                "spread_a_ratio": found.a.spread_ratio,
                "spread_b_ratio": found.b.spread_ratio,
                "counted": speed.basis,
                "not_comparable": speed.reason,
            }
        )
    return rows


def _exact(measure: str, unit: str, a: float | None, b: float | None) -> dict[str, Any]:
    """Return a measure that is a sum of the ledger: it has no interval."""
    change = None if a is None or b is None or not a else b / a - 1
    return {
        **dict.fromkeys(MEASURES),
        "measure": measure,
        "unit": unit,
        "a": a,
        "b": b,
        "change_ratio": change,
    }


def _useful(side: Measured) -> float | None:
    if not side.held_ms:
        return None
    useful = side.ledger.filter(pl.col("kind") == "goodput")["gpu_ms"].sum()
    return float(useful / side.held_ms)


def _total(rows: pl.DataFrame, column: str) -> float | None:
    """Return a sum; None where a part of it is not known."""
    known = rows[column]
    return None if known.is_empty() or known.null_count() else float(known.sum())


def _values(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the values of each attribute among the runs of a side, as one text."""
    values = pl.col("value").unique().sort()
    more = pl.col("value").n_unique().cast(pl.Int64) - VALUES_SHOWN
    text = values.head(VALUES_SHOWN).str.join(", ")
    shown = pl.when(more > 0).then(pl.format("{} and {} more", text, more)).otherwise(text)
    return rows.group_by("attribute", "label", "place").agg(shown.alias(name))


def _notes(a: Measured, b: Measured, found: Sequence[Speed], extent: str) -> Iterable[str]:
    for measured_side in (a, b):
        if not measured_side.held_ms:
            yield f"{measured_side.side.name}: no run had GPUs{extent}."
        elif measured_side.runs.is_empty():
            yield f"{measured_side.side.name}: no run reports steps; only its ledger is compared."
    for speed in found:
        if speed.reason is not None:
            yield f"{speed.workload} is not comparable: {speed.reason}."
        for one in speed.left_out[:SENTENCES_MAX]:
            yield f"Left out of {speed.workload}: {one}."
        if speed.unit == "steps" and _batches_differ(a, b):
            yield (
                "Steps per second are compared, since one side reports no tokens or samples; "
                "batches may differ."
            )
    if any(speed.basis == "steps" and speed.difference is not None for speed in found):
        yield (
            "Intervals from steps are of the noise within runs; how runs of one workload differ is "
            "in them only from four runs on each side on."
        )
    for measured_side in (a, b):
        yield from _changes_inside(measured_side)
    if not found and not a.runs.is_empty() and not b.runs.is_empty():
        yield "No workload (job name, model, GPUs, size) is on both sides."


def _changes_inside(side: Measured) -> Iterable[str]:
    for key, sentence in side.changes.head(SENTENCES_MAX).iter_rows():
        run = side.runs.filter(pl.col("run_key") == key)
        yield f"{side.side.name}, run {run['run_id'][0] if run.height else key}: {sentence}"
    if (more := side.changes.height - SENTENCES_MAX) > 0:
        yield f"{side.side.name}: {more} more changes of step time inside runs."


def _batches_differ(a: Measured, b: Measured) -> bool:
    known = [set(side.runs["batch"].drop_nulls().round(1)) for side in (a, b)]
    return known[0] != known[1]
