"""`goodput what-if`: a scenario from the site's own ledger, with its inputs and formulas."""

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import click
import polars as pl

from goodput_app.cli.database import built
from goodput_app.cli.options import answer_options, say
from goodput_app.settings import settings
from goodput_queries.errors import QueryError
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_scenarios import measured
from goodput_scenarios import scenario as scenarios
from goodput_scenarios.scenario import Answer, Field, Given
from goodput_scenarios.scenarios import SCENARIOS

CHECKPOINTS = "checkpoints"


def _value(text: str) -> tuple[str, Decimal]:
    """Return the name and the number of a value entered by the user: NAME=NUMBER."""
    name, _, number = text.partition("=")
    try:
        return name.strip(), Decimal(number.strip())
    except InvalidOperation:
        raise click.BadParameter(f"{text!r} is not like new_gpus=50.") from None


@click.command("what-if")
@click.argument("scenario", type=click.Choice(list(SCENARIOS)))
@click.option(
    "--of",
    "of",
    metavar="WHAT",
    help="GPU model, loss or run; default: the one with most GPU time.",
)
@click.option(
    "--set",
    "given",
    type=_value,
    metavar="NAME=NUMBER",
    multiple=True,
    help="Value to use instead of the measured one; repeatable.",
)
@answer_options
def what_if(
    *, scenario: str, of: str | None, given: tuple[tuple[str, Decimal], ...], db: str, scope: Scope
) -> pl.DataFrame:
    """Estimate the effect of other GPUs, fewer losses or power limits.

    upgrade: newer GPUs; halve-a-loss: half of one loss; checkpoints: another interval of saves;
    power-cap: a lower power limit.
    """
    of, scope = _of_scope(scenario, of, scope)
    asked = scenarios.in_currency(SCENARIOS[scenario], settings().statement.currency)
    with built(db) as store:
        scope = resolved(store, scope)
        of = scope.run or of
        choices = measured.choices(store, scenario, scope)
        if of not in choices and of is not None and measured.are_absent(store, scenario, scope, of):
            raise QueryError(
                f"--of {of!r}: there is none of it in this range; {_there_is(choices)}"
            )
        subject = _subject(of, choices)
        known = {} if subject is None else measured.measured(store, scenario, scope, subject)
    try:
        values = scenarios.filled(asked, known, dict(given))
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
    say(asked.question if subject is None else f"{asked.question} Of: {choices[subject]}.")
    if lacking := scenarios.missing(asked, values):
        flags = " ".join(f"--set {field.name}=..." for field in lacking)
        say(f"Input needed for all results: {flags}")
    inputs = [_input(field, values.get(field.name)) for field in asked.fields]
    return frame([*inputs, *map(_answer, scenarios.solved(asked, values))])


def _of_scope(scenario: str, of: str | None, scope: Scope) -> tuple[str | None, Scope]:
    """Return what is asked about; raises UsageError for a filter that the scenario has no use for.

    Capacity has no owner: a scenario is computed for whole clusters, only checkpoints for a run,
    which is a filter however it is given, so that its id or its job's name does.
    """
    if scenario == CHECKPOINTS:
        if scope.run is not None and of is not None:
            raise click.UsageError("--run and --of name the run twice; give one of them.")
        of, scope = None, replace(scope, run=scope.run or of)
    for name in ("node", "team") if scenario == CHECKPOINTS else ("run", "node", "team"):
        if getattr(scope, name) is not None:
            raise click.UsageError(
                f"{scenario} is computed for whole clusters: --{name} does not apply; "
                "--cluster, --from and --to do."
            )
    return of, scope


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return inputs and answers as a frame. low, high: bounds, equal where it is known exactly."""
    texts = ("kind", "name", "label")
    return pl.DataFrame(
        rows,
        schema={
            **dict.fromkeys(texts, pl.String),
            "low": pl.Float64,
            "high": pl.Float64,
            **dict.fromkeys(("unit", "basis", "worked"), pl.String),
        },
    )


def _subject(of: str | None, choices: dict[str, str]) -> str | None:
    """Return what is asked about: the one named, else the first; None where there is none."""
    if of is None:
        return next(iter(choices), None)
    if of in choices:
        return of
    called_so = [name for name, label in choices.items() if label.lower() == of.lower()]
    if len(called_so) == 1:
        return called_so[0]
    raise QueryError(f"--of {of!r} is not available here; {_there_is(choices)}")


def _there_is(choices: dict[str, str]) -> str:
    known = ", ".join(repr(name) for name in list(choices)[:8]) or "nothing in this window"
    return f"there is: {known}."


def _input(field: Field, given: Given | None) -> dict[str, Any]:
    return {
        "kind": "unknown" if given is None else given.kind,
        "name": field.name,
        "label": field.label,
        "low": None if given is None else float(given.span.lo),
        "high": None if given is None else float(given.span.hi),
        "unit": field.unit,
        "basis": field.meaning if given is None else given.source,
        "worked": None,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "kind": "answer",
        "name": answer.name,
        "label": answer.label,
        "low": None if answer.span is None else float(answer.span.lo),
        "high": None if answer.span is None else float(answer.span.hi),
        "unit": answer.unit,
        "basis": answer.formula,
        "worked": answer.worked,
    }
