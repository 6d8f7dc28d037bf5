"""Goodput as it is shown: one number, its upper bound, what inside steps is not measured."""

from __future__ import annotations

from typing import Any

import pytest

from goodput_app import headline
from goodput_queries.scope import EVERYTHING, Scope


def summary(**changes: Any) -> dict[str, Any]:
    """Give what the headline reads of marts.goodput_summary."""
    return {
        "goodput_ratio": 0.461,
        "goodput_hi_ratio": 0.741,
        "step_unsplit_ms": 0,
        "kept_step_ms": 1000,
        "communication_ratio": None,
        "communication_step_ms": 0,
        "communication_runs": 0,
    } | changes


def test_the_interval_is_the_upper_bound_of_the_one_number() -> None:
    said = headline.sentence(summary(), EVERYTHING)

    assert said == "Goodput 46.1 % of capacity (up to 74.1 % if all unclassified time was useful)."


def test_a_bound_that_reads_like_the_number_is_not_repeated() -> None:
    assert headline.notes(summary(goodput_hi_ratio=0.4611)) == []


def test_waits_inside_steps_that_nothing_measures_are_named() -> None:
    said = headline.sentence(summary(goodput_hi_ratio=0.461, step_unsplit_ms=1), EVERYTHING)

    assert said == "Goodput 46.1 % of capacity; waits inside steps not measured."


@pytest.mark.parametrize("owner", ["team", "user", "run", "partition"])
def test_of_an_owner_the_denominator_is_what_was_allocated(owner: str) -> None:
    assert headline.denominator(Scope(**{owner: "a"})) == "allocated"
    assert headline.denominator(Scope(node="n")) == "capacity"


def test_communication_names_the_part_of_step_time_that_measures_it() -> None:
    row = summary(communication_ratio=0.1, communication_step_ms=250, communication_runs=3)

    assert headline.communication(row) == (
        "Communication 10.0 % of step time, measured in 3 runs with 25.0 % of all step time."
    )
    assert headline.communication(summary()) is None


@pytest.mark.parametrize(
    ("unsettled_ms", "hi", "shown"),
    [(0, 0.5, ("50.0 %", "")), (30, 0.8, ("50.0 %", "up to 80.0 %")),
     (100, 1.5, ("not measured", ""))],
)  # fmt: skip
def test_goodput_of_a_run_is_as_sharp_as_its_evidence(
    unsettled_ms: int, hi: float, shown: tuple[str, str]
) -> None:
    run = {
        "goodput_of_held_ratio": 0.5,
        "goodput_of_held_hi_ratio": hi,
        "held_ms": 100,
        "unsettled_ms": unsettled_ms,
    }
    assert headline.of_run(run) == shown
