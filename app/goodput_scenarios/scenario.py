"""What a scenario is made of: fields that are measured, assumed or asked for, and formulas."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.resources import files
from typing import Literal

from goodput_scenarios.span import Span

HOURS_PER_YEAR = Decimal(8760)
MONEY = "USD"  # as the scenarios are written; shown in the site's currency
_MONEY = re.compile(rf"\b{MONEY}\b")
Kind = Literal["measured", "assumed", "given"]
Values = Mapping[str, Span]
Worked = tuple[Span | None, str]


class Known(dict[str, Span]):
    """Values by name, and parts that several formulas of a scenario share, worked once."""

    def __init__(self, values: Values, parts: Mapping[str, "Expression"]) -> None:
        super().__init__(values)
        self.parts = parts

    def __missing__(self, name: str) -> Span:
        """Work out a part."""
        self[name] = self.parts[name](self)
        return self[name]

    def __getattr__(self, name: str) -> Span:
        """Return a value or a part."""
        return self[name]


Expression = Callable[[Known], Span]
Work = Callable[[Values], Worked]


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
    work: Work
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


def worked(expression: Expression, text: str) -> Callable[[Known], Worked]:
    """Return how a number is worked.

    text: the formula with its numbers, in which `{gpus:0}` is a value or part without decimals, two
    where none are said, and `{it}` the result
    """

    def work(known: Known) -> Worked:
        found = expression(known)
        return found, text.format_map(Known(known | {"it": found}, known.parts))

    return work


# of what several scenarios save
ELECTRICITY: tuple[Expression, str] = (
    lambda v: v.saved_kwh * v.price_per_kwh,
    "{saved_kwh:0} kWh x {price_per_kwh:4} USD = {it:0} USD",
)


def scenario(
    name: str,
    title: str,
    question: str,
    *works: tuple[Expression, str] | Callable[[Known], Worked],
    parts: Mapping[str, Expression],
) -> Scenario:
    """Return a scenario of `fields.csv` and `formulas.csv`.

    works: of its formulas, in order: as `worked` takes them, or a function where the values may
    give none. parts: what several of them need
    """

    def of_values(work: tuple[Expression, str] | Callable[[Known], Worked]) -> Work:
        of_known = worked(*work) if isinstance(work, tuple) else work
        return lambda values: of_known(Known(values, parts))

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
            of_values(work),
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

    def worked_in_it(work: Work) -> Work:
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


def _within(field: Field, amount: Decimal) -> Decimal:
    if not amount.is_finite() or not field.least <= amount <= field.most:
        raise ValueError(
            f"{field.label} is {amount}, expected {field.least:f} to {field.most:f} {field.unit}"
        )
    return amount
