"""Findings and goodput in sentences: subject, confidence, bounds, and what is not known."""

import polars as pl
from tests.tables import each, gives

from goodput_app.text import headline
from goodput_app.text.confidence import hit_rates, with_hit_rate
from goodput_app.text.sentences import sentence
from goodput_app.text.throttling import empty_meaning, recurrence
from goodput_queries.scope import EVERYTHING, Scope

test_a_sentence_names_its_subject = gives(
    sentence,
    ("A node is drained", "hgx-3", "hgx-3 is drained"),
    ("A node's link is slow", "vm", "vm's link is slow"),
    ("A GPU has vanished", "vm, GPU 3", "vm, GPU 3 has vanished"),
    ("A network link was lost", "vm", "vm: a network link was lost"),
    ("GPUs are free while jobs wait", "atlas", "atlas: GPUs are free while jobs wait"),
    ("ECC is off", "vm, GPU 3", "vm, GPU 3: ECC is off"),
    ("A node is down", r"n\1", r"n\1 is down"),
    ("The ledger is not up to date", "", "The ledger is not up to date"),
)


FINDING = {"rule": "hang", "confidence": "Likely", "right_count": None, "total_count": None}
NOBODY = {"accepted": None, "dismissed": None}

test_a_finding_says_how_often_such_ones_were_right = gives(
    lambda known: with_hit_rate(FINDING | known),
    (NOBODY, "Likely; not measured in tests"),
    ({"rule": "build_refused", **NOBODY},
     "Likely; no rate: it shows a defect of Goodput's own SQL, which no evidence brings about"),
    ({"right_count": 58, "total_count": 60, **NOBODY},
     "Likely; 58 of 60 such findings were right in tests"),
    ({"accepted": 3, "dismissed": 1},
     "Likely; not measured in tests; people acknowledged 3 of this rule and dismissed 1"),
)  # fmt: skip

test_a_rule_says_what_tests_found = gives(
    hit_rates,
    ({}, "not measured in tests"),
    ({"": (19, 20), "Confirmed": (1_058, 1_060)},
     "Confirmed right in 1,058 of 1,060; 19 of 20 cases found"),
)  # fmt: skip


@each(
    (True, True, False, "No GPU was throttled."),
    (True, False, True, "No GPU was throttled."),
    (False, False, False, "Throttling is not known: no reading"),
    (True, False, False, "Throttling is not known: these readings carry neither"),
)
def test_an_empty_list_says_whether_any_source_could_report(readings, reasons, counters, beginning):
    sources = pl.DataFrame(
        {"has_readings": [readings], "has_reasons": [reasons], "has_counters": [counters]}
    )
    assert empty_meaning(sources).startswith(beginning)


@each(
    ("chronic", 6.0, "hw_thermal chronic (3 of 12 h read). Margin to the slowdown "
                     "temperature: 6 °C."),
    (None, None, "hw_thermal in too few hours to call it chronic or passing (3 of 12 h read). "
                 "Margin to the slowdown temperature: unknown."),
)  # fmt: skip
def test_a_sentence_says_whether_throttling_is_chronic_or_not_known(known, margin, expected):
    row = {"reason": "hw_thermal", "recurrence": known, "throttled_hours": 3, "read_hours": 12}
    found = pl.DataFrame([{**row, "slowdown_margin_c": margin}])
    assert recurrence(found) == expected
    assert recurrence(found.clear()) == ""


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


@each(
    (EVERYTHING, {}, "46.1 % (up to 74.1 % if all unclassified time was useful); jobs report "),
    (Scope(run="a"), {}, "steps for 90.0 % of allocated time of all teams and runs."),
    (EVERYTHING, {"goodput_hi_ratio": 0.4611}, "46.1 %; jobs report steps for 90.0 % of"),
    (EVERYTHING, {"step_unsplit_ms": 1000}, "; waits inside steps not measured; "),
    (EVERYTHING, {"step_unsplit_ms": 250}, "; waits inside 25.0 % of step time not measured; "),
)
def test_the_headline_is_one_number_with_its_bound_and_what_is_not_measured(scope, changes, words):
    sentence = headline.headline(summary(**changes), ladder(), scope).sentence
    assert sentence.startswith(f"Goodput (% of {headline.denominator(scope)}): 46.1 %")
    assert words in sentence


def test_without_steps_of_jobs_the_headline_is_activity_and_names_what_brings_goodput():
    low = ladder(rung="active_while_allocated", ratio=0.8, next_step="Let jobs report their steps")

    assert headline.headline(summary(), low, EVERYTHING).sentence == (
        "Active while allocated: 80.0 %; readings cover 90.0 % of allocated time; "
        "next: Let jobs report their steps."
    )
    assert "of all teams and runs" in headline.headline(summary(), low, Scope(team="a")).notes
    few = ladder(rung="gpu_activity", ratio=None, coverage=0.1, next_step="Add GPU telemetry")
    shown = headline.headline(summary(), few, EVERYTHING)
    assert (shown.label, shown.text) == ("GPU activity (% of observed time)", "not measured")


test_of_an_owner_the_denominator_is_what_was_allocated = gives(
    lambda filtered: headline.denominator(Scope(**{filtered: "a"})),
    *((owner, "allocated") for owner in ("team", "user", "run", "partition")),
    ("node", "capacity"),
)


def test_communication_names_the_part_of_step_time_that_measures_it():
    row = summary(communication_ratio=0.1, communication_step_ms=250, communication_runs=3)

    assert headline.communication(row) == (
        "Communication 10.0 % of step time, measured in 3 runs with 25.0 % of all step time."
    )
    assert headline.communication(summary()) is None


test_goodput_of_a_run_is_as_sharp_as_its_evidence = gives(
    lambda low, hi: headline.of_run({"goodput_of_held_ratio": low, "goodput_of_held_hi_ratio": hi}),
    (0.5, 0.5, ("50.0 %", "")),
    (0.5, 0.8, ("50.0 %", "up to 80.0 %")),
    (None, 1.0, ("not measured", "")),
)
