"""Goodput in words: one number and its upper bound, the same on screen and in the terminal.

The functions take rows of marts.goodput_summary; `of_run` takes one of marts.runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goodput_app import theme

if TYPE_CHECKING:
    from collections.abc import Mapping

    from goodput_queries.scope import Scope

IF_ALL = "if all unclassified time was useful"
NOT_IN_STEPS = "waits inside steps not measured"


def denominator(scope: Scope) -> str:
    """Return what goodput is a share of: an owner's time is what it had allocated."""
    is_owned = any((scope.team, scope.user, scope.run, scope.partition))
    return "allocated" if is_owned else "capacity"


def value(row: Mapping[str, Any]) -> str:
    """Return goodput."""
    return theme.percent(row["goodput_ratio"])


def upper(row: Mapping[str, Any]) -> str | None:
    """Return the upper bound where it reads otherwise than goodput itself."""
    shown = theme.percent(row["goodput_hi_ratio"])
    return None if shown == value(row) else f"up to {shown} {IF_ALL}"


def notes(row: Mapping[str, Any]) -> list[str]:
    """Return what stands beside the number: its upper bound, what inside steps is not measured."""
    missing = NOT_IN_STEPS if row["step_unsplit_ms"] else None
    return [note for note in (upper(row), missing) if note is not None]


def sentence(row: Mapping[str, Any], scope: Scope) -> str:
    """Return goodput with its denominator, its upper bound and what is not measured."""
    bound = upper(row)
    missing = f"; {NOT_IN_STEPS}" if row["step_unsplit_ms"] else ""
    return f"Goodput {value(row)} of {denominator(scope)}{f' ({bound})' if bound else ''}{missing}."


def communication(row: Mapping[str, Any]) -> str | None:
    """Return communication's share of step time, and of which part of it that is known."""
    if row["communication_ratio"] is None:
        return None
    part = theme.percent(row["communication_step_ms"] / row["kept_step_ms"])
    runs = theme.count(row["communication_runs"], "run")
    return (
        f"Communication {theme.percent(row['communication_ratio'])} of step time, measured in "
        f"{runs} with {part} of all step time."
    )


def of_run(run: Mapping[str, Any]) -> tuple[str, str]:
    """Return a run's goodput, and its upper bound or nothing."""
    low, high = run["goodput_of_held_ratio"], run["goodput_of_held_hi_ratio"]
    if low is None or run["unsettled_ms"] >= run["held_ms"]:
        return theme.NOT_MEASURED, ""
    shown, bound = theme.percent(low), theme.percent(high)
    return shown, "" if bound == shown else f"up to {bound}"
