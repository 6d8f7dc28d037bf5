"""A build whose checks fail is not published: the ledger stays, and a finding names the rows."""

import pytest
from tests.queries.conftest import built_file, copy_of, durable, steps

from goodput_queries.errors import UnbalancedError
from goodput_queries.ledger_build import build as builds
from goodput_queries.ledger_build import materialise

HOUR = 3600
SEGMENTS = "intermediate.int_ledger_segments"
OF_THIS_BUILD = "hour_ms >= build_from_ms() and hour_ms < build_to_ms()"
FAULTS = {
    "counted twice": f"insert into {SEGMENTS} from {SEGMENTS} where {OF_THIS_BUILD}",
    "lost": f"delete from {SEGMENTS} where {OF_THIS_BUILD}",
    "negative": f"update {SEGMENTS} set gpu_ms = -gpu_ms where {OF_THIS_BUILD}",
    "too much": f"update {SEGMENTS} set gpu_ms = gpu_ms + 1 where {OF_THIS_BUILD}",
    # as long as before, over a hole of the same length
    "moved": f"update {SEGMENTS} set start_ms = start_ms + 1000, end_ms = end_ms + 1000 "
    f"where category = 'unknown' and {OF_THIS_BUILD}",
    "of no category": f"update {SEGMENTS} set category = 'banana' "
    f"where category = 'unknown' and {OF_THIS_BUILD}",
}
READ = f"select * from {SEGMENTS} order by gpu_uuid, start_ms"


@built_file
def built_once(evidence):
    """Return a cluster of one GPU with a job in its first hour, built."""
    evidence.job_on_a_node("1", 0, 1800, 1, watched=2 * HOUR)


built = copy_of("built_once")


@pytest.fixture
def break_segments(monkeypatch):
    """Return what makes the stage of segments write wrong rows, by an SQL statement."""
    right = materialise.replace_hours

    def break_by(sql):
        def wrong(cursor, models, *args, **kwargs):
            done = right(cursor, models, *args, **kwargs)
            if models[0].qualified_name == SEGMENTS:
                cursor.execute(sql)
            return done

        monkeypatch.setattr(builds.materialise, "replace_hours", wrong)

    return break_by


def test_a_build_with_wrong_segments_leaves_the_ledger_of_the_one_before(built, break_segments):
    before = built.read(READ)
    for number, fault in enumerate(FAULTS):
        built.job(fault, 2000 + 100 * number, 2100 + 100 * number, ["a"], 1)
        break_segments(FAULTS[fault])
        with pytest.raises(UnbalancedError, match="the checks of this one failed") as first:
            built.store.build()
        assert built.read(READ).equals(before), fault
    break_segments("select error('computed again, though no evidence came')")
    with pytest.raises(UnbalancedError) as second:
        built.store.build()

    assert str(second.value) == str(first.value)
    assert built.violations() == 0


FOUND = "select evidence from marts.rule_build_refused"  # a page: its case


@pytest.mark.parametrize("is_full", [True, False], ids=["a full one", "with new evidence"])
def test_the_finding_closes_with_the_next_good_build(built, break_segments, monkeypatch, is_full):
    built.job("2", 2000, 3000, ["a"], 1)
    break_segments(FAULTS["too much"])
    with pytest.raises(UnbalancedError):
        built.store.build()
    of_the_gpu = ("1 case, for example c/a#0  on c/a in the hour from 2027-01-15 08:00:00: "
                  "3600004 ms of 3600000 ms")  # fmt: skip
    of_the_roll_up = (
        "1 case, for example c/a in the hour from 2027-01-15 08:00:00: 3600000 ms of 3600004 ms"
    )
    assert set(built.read(FOUND).rows()) == {(of_the_gpu,), (of_the_roll_up,)}

    monkeypatch.undo()
    if not is_full:
        built.job("3", 3000, 3600, ["a"], 1)
    built.store.build(is_full=is_full)

    assert built.read(FOUND).rows() == []
    assert built.gpu_s()["unknown"] == 1800 + 1000 + (0 if is_full else 600)
    assert built.violations() == 0


def test_amounts_that_do_not_add_up_to_their_stretch_are_refused(evidence, break_segments):
    evidence.job_on_a_node("1", 0, 1000, 1)
    evidence.events("1", [*steps(1, 10, 100), durable(10, 300)])
    break_segments("update intermediate.int_step_amounts set ms = ms - 1")

    with pytest.raises(UnbalancedError, match="roll-up differs from the segments"):
        evidence.store.build()
