"""What a scenario is made of: fields that are measured, assumed or asked for, and formulas."""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.resources import files
from typing import Literal

from goodput_scenarios.span import Span

HOURS_PER_YEAR = Decimal(8760)
MONEY = "USD"  # as the scenarios are written; shown in the site's currency
DIGITS = 5  # of the numbers of a formula, so that a reader gets its result from them
_MONEY = re.compile(rf"\b{MONEY}\b")
Kind = Literal["measured", "assumed", "given"]
Values = Mapping[str, Span]
Worked = tuple[Span | None, str]


@dataclass(frozen=True)
class Field:
    """A value that formulas need; amounts are from `least` to `most`, both included.

    assumed: what holds where nothing was measured or given, labelled as an assumption; None: it is
    asked for.
    """

    name: str
    label: str
    unit: str
    meaning: str
    assumed: Decimal | None = None
    least: Decimal = Decimal(0)
    most: Decimal = Decimal(10) ** 12


@dataclass(frozen=True)
class Given:
    """A value with where it comes from: a view and its window, an assumption, or a person."""

    span: Span
    kind: Kind
    source: str


@dataclass(frozen=True)
class Formula:
    """One number of a scenario: its formula in words, the fields it needs, and how it is worked.

    work: from the values to the number and the formula with its numbers put in; None and why where
    these values give none. is_headline: shown large.
    """

    name: str
    label: str
    unit: str
    words: str
    needs: Sequence[str]
    work: Callable[[Values], Worked]
    is_headline: bool = False


@dataclass(frozen=True)
class Answer:
    """The result of a formula. span None: it is not known, and `worked` has the reason."""

    name: str
    label: str
    unit: str
    span: Span | None
    formula: str
    worked: str
    is_headline: bool


@dataclass(frozen=True)
class Scenario:
    """A question, what there is to know for it, and the formulas that answer it."""

    name: str
    title: str
    question: str
    fields: Sequence[Field]
    formulas: Sequence[Formula]


def scenario(name: str, title: str, question: str, *works: Callable[[Values], Worked]) -> Scenario:
    """Return a scenario of `fields.csv` and `formulas.csv`; works: of its formulas, in order."""
    numbers = ("assumed", "least", "most")
    fields = [
        Field(
            row["name"],
            row["label"],
            row["unit"],
            row["meaning"],
            **{column: Decimal(row[column]) for column in numbers if row[column]},
        )
        for row in _rows("fields.csv", name)
    ]
    formulas = [
        Formula(
            row["name"],
            row["label"],
            row["unit"],
            row["words"],
            row["needs"].split(),
            work,
            is_headline=row["is_headline"] == "yes",
        )
        for row, work in zip(_rows("formulas.csv", name), works, strict=True)
    ]
    return Scenario(name, title, question, fields, formulas)


def _rows(file: str, scenario: str) -> list[dict[str, str]]:
    text = (files("goodput_scenarios") / file).read_text("utf-8")
    return [row for row in csv.DictReader(text.splitlines()) if row["scenario"] == scenario]


def in_currency(scenario: Scenario, code: str) -> Scenario:
    """Return the scenario with the site's currency in its units and in how it is worked."""

    def in_site_currency(text: str) -> str:
        return _MONEY.sub(code, text)

    def worked_in_it(work: Callable[[Values], Worked]) -> Callable[[Values], Worked]:
        def work_in_it(values: Values) -> Worked:
            span, worked = work(values)
            return span, in_site_currency(worked)

        return work_in_it

    return replace(
        scenario,
        fields=[replace(field, unit=in_site_currency(field.unit)) for field in scenario.fields],
        formulas=[
            replace(
                formula,
                unit=in_site_currency(formula.unit),
                words=in_site_currency(formula.words),
                work=worked_in_it(formula.work),
            )
            for formula in scenario.formulas
        ],
    )


def filled(
    scenario: Scenario, measured: Mapping[str, Given], given: Mapping[str, Decimal]
) -> dict[str, Given]:
    """Return the values of a scenario: what a person gives beats what was measured.

    Raises ValueError, naming the field, for an amount outside its limits or of no field.
    """
    if unknown := given.keys() - {field.name for field in scenario.fields}:
        known = ", ".join(field.name for field in scenario.fields)
        raise ValueError(
            f"{min(unknown)!r} is not a value of {scenario.name}, expected of: {known}"
        )
    found: dict[str, Given] = {}
    for field in scenario.fields:
        if field.name in given:
            found[field.name] = Given(Span.of(_within(field, given[field.name])), "given", "given")
        elif field.name in measured:
            found[field.name] = measured[field.name]
        elif field.assumed is not None:
            found[field.name] = Given(Span.of(field.assumed), "assumed", "an assumption")
    return found


def missing(scenario: Scenario, values: Mapping[str, Given]) -> list[Field]:
    """Return the fields that some formula lacks."""
    return [field for field in scenario.fields if field.name not in values]


def solved(scenario: Scenario, values: Mapping[str, Given]) -> list[Answer]:
    """Return an answer a formula; one that lacks a value asks for it."""
    spans = {name: given.span for name, given in values.items()}
    labels = {field.name: field.label for field in scenario.fields}
    answers = []
    for formula in scenario.formulas:
        lacking = [labels[name] for name in formula.needs if name not in spans]
        span, worked = (
            (None, f"not known: {', '.join(lacking)}") if lacking else formula.work(spans)
        )
        answers.append(
            Answer(
                formula.name,
                formula.label,
                formula.unit,
                span,
                formula.words,
                worked,
                formula.is_headline,
            )
        )
    return answers


def number(span: Span, decimals: int = 2) -> str:
    """Return a span as people check it: `20.0`, `12.5 to 14.0`; small ones with more decimals."""
    low, high = (_shown(float(end), decimals) for end in (span.lo, span.hi))
    return low if low == high else f"{low} to {high}"


def _shown(value: float, decimals: int) -> str:
    """Return a number with so many decimals, or more where it has less than DIGITS digits.

    Zeros at its end are cut down to `decimals`, below 1 to two digits: 0.0 has no sense.
    """
    if value == 0:
        return f"{value:,.{decimals}f}"
    first = math.floor(math.log10(abs(value)))
    least = max(decimals, 1 - first) if first < 0 else decimals
    shown = f"{value:,.{max(least, DIGITS - 1 - first)}f}"
    whole, _, fraction = shown.partition(".")
    kept = fraction[:least] + fraction[least:].rstrip("0")
    return f"{whole}.{kept}" if kept else whole


def _within(field: Field, amount: Decimal) -> Decimal:
    if not amount.is_finite() or not field.least <= amount <= field.most:
        raise ValueError(
            f"{field.label} is {amount}, expected {field.least:f} to {field.most:f} {field.unit}"
        )
    return amount
