"""Goodput as it is shown: one number, its upper bound, what inside steps is not measured."""

import pytest

from goodput_app.text import headline
from goodput_queries.scope import EVERYTHING, Scope


def summary(**changes):
    """Give what the headline reads of marts.goodput_summary."""
    return {
        "goodput_ratio": 0.461, "goodput_hi_ratio": 0.741, "step_unsplit_ms": 0,
        "kept_step_ms": 1000, "communication_ratio": None, "communication_step_ms": 0,
        "communication_runs": 0,
    } | changes  # fmt: skip


def ladder(**changes):
    """Give what the headline reads of marts.evidence_ladder."""
    return {"rung": "goodput", "ratio": 0.461, "coverage": 0.9, "next_step": None} | changes


@pytest.mark.parametrize(
    ("scope", "changes", "words"),
    [
        (EVERYTHING, {}, "46.1 % (up to 74.1 % if all unclassified time was useful); jobs report "),
        (Scope(run="a"), {}, "steps for 90.0 % of allocated time of all teams and runs."),
        (EVERYTHING, {"goodput_hi_ratio": 0.4611}, "46.1 %; jobs report steps for 90.0 % of"),
        (EVERYTHING, {"step_unsplit_ms": 1000}, "; waits inside steps not measured; "),
        (EVERYTHING, {"step_unsplit_ms": 250}, "; waits inside 25.0 % of step time not measured; "),
    ],
    ids=["upper-bound", "beside-one-run", "bound-reads-alike", "no-waits", "some-waits"],
)
def test_the_headline_is_one_number_with_its_bound_and_what_is_not_measured(scope, changes, words):
    sentence = headline.headline(summary(**changes), ladder(), scope).sentence

    assert sentence.startswith(f"Goodput (% of {headline.denominator(scope)}): 46.1 %")
    assert words in sentence


def test_without_steps_of_jobs_the_headline_is_activity_and_names_what_brings_goodput():
    low = ladder(rung="active_while_allocated", ratio=0.8, next_step="Let jobs report their steps")

    shown = headline.headline(summary(), low, EVERYTHING)

    assert shown.sentence == (
        "Active while allocated: 80.0 %; readings cover 90.0 % of allocated time; "
        "next: Let jobs report their steps."
    )
    assert "of all teams and runs" in headline.headline(summary(), low, Scope(team="a")).notes


def test_activity_that_too_few_readings_cover_is_not_measured():
    low = ladder(rung="gpu_activity", ratio=None, coverage=0.1, next_step="Add GPU telemetry")

    shown = headline.headline(summary(), low, EVERYTHING)

    assert (shown.label, shown.text) == ("GPU activity (% of observed time)", "not measured")


@pytest.mark.parametrize("owner", ["team", "user", "run", "partition"])
def test_of_an_owner_the_denominator_is_what_was_allocated(owner):
    assert headline.denominator(Scope(**{owner: "a"})) == "allocated"
    assert headline.denominator(Scope(node="n")) == "capacity"


def test_communication_names_the_part_of_step_time_that_measures_it():
    row = summary(communication_ratio=0.1, communication_step_ms=250, communication_runs=3)

    assert headline.communication(row) == (
        "Communication 10.0 % of step time, measured in 3 runs with 25.0 % of all step time."
    )
    assert headline.communication(summary()) is None


@pytest.mark.parametrize(
    ("low", "hi", "shown"),
    [(0.5, 0.5, ("50.0 %", "")), (0.5, 0.8, ("50.0 %", "up to 80.0 %")),
     (None, 1.0, ("not measured", ""))],
)  # fmt: skip
def test_goodput_of_a_run_is_as_sharp_as_its_evidence(low, hi, shown):
    run = {"goodput_of_held_ratio": low, "goodput_of_held_hi_ratio": hi}
    assert headline.of_run(run) == shown
