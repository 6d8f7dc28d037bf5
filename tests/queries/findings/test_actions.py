"""What people say of findings: kept apart from evidence, and for how long it holds."""

from datetime import timedelta

import pytest
from tests.queries.conftest import built_file, copy_of, store_of

from goodput_queries.catalog.rules import rates
from goodput_queries.errors import GoodputError
from goodput_queries.findings import NOTE_MAX_CHARS, record

HOUR = 3600


@built_file
def built_down(evidence):
    """Give a cluster with a node that was down, twice; six hours lie between."""
    for node in ("a", "b"):
        evidence.node(node, 8)
    evidence.watched(10 * HOUR)
    evidence.state("b", "down", 600, 1200)
    evidence.state("b", "down", 8 * HOUR, 8 * HOUR + 600)
    for second in (600, 8 * HOUR):
        evidence.xid("b", 79, second, gpu_uuid="c/b#0", message="fell off the bus")


down = copy_of("built_down")
store = store_of("built_down")  # to which nothing is recorded


@pytest.fixture(scope="module")
def known(store):
    return errors(findings(store))


def findings(store):
    return store.read("from marts.findings order by since_at").to_dicts()


def errors(rows):
    return [row for row in rows if row["rule"] == "gpu_error"]


def states(rows):
    return [row["state"] for row in errors(rows)]


def numbers(rows):
    """Return what findings come to."""
    return len(rows), *(sum(row[name] or 0 for row in rows) for name in ("gpu_ms", "back_ms"))


def test_an_acknowledgement_is_of_its_occurrence_and_survives_a_full_build(down, known):
    """A rule and subject have one key, and an occurrence each time. A note leaves its state."""
    first, second = known
    assert first["finding_key"] == second["finding_key"]
    assert second["since_at"] - first["since_at"] > timedelta(hours=6)
    record(down.store, second, "acknowledge", said_by="ops")
    record(down.store, second, "note", said_by="ada", note="ticket 7")
    down.store.build(is_full=True)

    said = [(row["state"], row["note"], row["said_by"]) for row in errors(findings(down.store))]
    assert said == [("closed", None, None), ("acknowledged", "ticket 7", "ada")]


def test_a_dismissal_holds_for_what_comes_later_until_it_is_reopened(down, store, known):
    """It leaves the fix list, and changes no number of the findings.

    Answers are counted by rule, and only the last one of a finding.
    """
    every = findings(store)
    listed = sum(row["fix"] == "drain_node" for row in every)

    record(down.store, known[0], "dismiss", said_by="ops", note="test node")

    dismissed = findings(down.store)
    assert states(dismissed) == ["dismissed", "dismissed"]
    assert numbers(dismissed) == numbers(every)
    fixes = "select coalesce(sum(findings), 0) from marts.fixes where fix = 'drain_node'"
    assert down.store.read(fixes).item() == listed - 2
    record(down.store, known[0], "acknowledge", said_by="ops")
    rows = findings(down.store)
    answers = {(row["rule"] == "gpu_error", row["accepted"], row["dismissed"]) for row in rows}
    assert answers == {(True, 1, 0), (False, None, None)}
    record(down.store, known[0], "reopen", said_by="ops")
    assert states(findings(down.store)) == ["closed", "closed"]


def test_a_finding_says_how_often_such_ones_were_right_in_tests(store, known):
    """A rule that is often wrong in tests confirms nothing."""
    counts = known[0]["right_count"], known[0]["total_count"]
    assert rates()["gpu_error"][known[0]["confidence"]] == counts
    ratios = {"0.89": "Not confirmed", "0.9": "Confirmed", "null": "Confirmed"}
    asked = ", ".join(f"tested_confidence('Confirmed', {ratio})" for ratio in ratios)
    assert store.read(f"select {asked}").row(0) == tuple(ratios.values())


@pytest.mark.parametrize(("action", "said_by", "note", "expected"), [
    ("dismiss", "ops", None, "A note is needed"),
    ("note", "ops", "  ", "A note is needed"),
    ("acknowledge", " ", None, "A name"),
    ("acknowledge", "ops", "x" * (NOTE_MAX_CHARS + 1), "at most"),
    ("close", "ops", None, "is none of"),
])  # fmt: skip
def test_what_cannot_be_recorded_is_an_error(store, known, action, said_by, note, expected):
    with pytest.raises(GoodputError, match=expected):
        record(store, known[0], action, said_by=said_by, note=note)
