"""Open findings with what a notification says: the owner of the job, and its GPUs idle now."""

import pytest

HOUR = 3600


@pytest.fixture
def found(evidence):
    """Give the open findings of a running job whose GPUs went idle after 20 of 60 minutes."""
    evidence.node("a", 4)
    evidence.job("7", 0, None, ["a"], 4, state="RUNNING", job_name="train", user_name="ann")
    evidence.watched(HOUR)
    for gpu in range(4):
        evidence.samples(f"a#{gpu}", evidence.every(-10, HOUR), lambda second: second <= 1200)
    evidence.store.build()
    rows = evidence.store.read("select * from marts.open_findings").to_dicts()
    return evidence, {row["rule"]: row for row in rows}


def test_an_idle_job_names_its_user_and_the_gap_that_goes_on_until_it_works_again(found):
    evidence, rows = found

    row = rows["idle_allocation"]
    assert (row["user_name"], row["team"], row["job_name"]) == ("ann", "team", "train")
    assert (row["state"], row["severity"], row["owner"]) == ("open", "ticket", "team")
    assert (row["idle_gpus"], row["idle_since_at"]) == (4, evidence.at(1200))

    for gpu in range(4):
        evidence.samples(f"a#{gpu}", evidence.every(HOUR + 10, 2 * HOUR), lambda _second: True)
    evidence.watched(2 * HOUR)
    evidence.store.build()

    later = evidence.store.read("select rule from marts.open_findings")["rule"].to_list()
    assert "idle_allocation" not in later
