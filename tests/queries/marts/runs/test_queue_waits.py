"""How long job runs waited for GPUs, by team, size and reason."""

import pytest

from goodput_queries.scope import Scope

START_MS = 1_800_000_000_000
SCOPE = Scope(from_ms=START_MS, to_ms=START_MS + 3_600_000)


@pytest.fixture(scope="module")
def store(shared_evidence):
    """Give two job runs that waited, one that waits, one whose dependency is not met, no GPUs."""
    made = shared_evidence
    made.node("a", 8)
    made.watched(3600)
    made.job("1", 600, 700, ["a"], 1, submit=0, account="nlp", gpus_requested=1)
    made.job("2", 800, 900, ["a"], 8, submit=0, eligible=600, account="nlp", gpus_requested=8)
    pending = {"state": "PENDING", "observed_at": made.at(3600)}
    made.job("3", None, None, [], None, submit=3000, account="cv", gpus_requested=16,
             reason="QOSMaxGRESPerUser", **pending)  # fmt: skip
    made.job("4", None, None, [], None, submit=3000, eligible=None, account="cv",
             gpus_requested=16, reason="Dependency", **pending)  # fmt: skip
    made.job("5", 100, 200, ["a"], 0, submit=0, account="web", gpus_requested=0)
    made.job("6", None, 900, [], None, submit=0, account="nlp", gpus_requested=4, state="CANCELLED")
    made.build()
    return made.store


def waits(store, group_by, scope=SCOPE):
    found = store.read("from marts.queue_waits", scope=scope).to_dicts()
    return {row["name"]: row for row in found if row["group_by"] == group_by}


EARLY = Scope(from_ms=START_MS, to_ms=START_MS + 300_000)
# what it shows: scope, group and name, columns
WAITS = {
    "a wait goes from eligible to start": (
        SCOPE, "team", "nlp",
        {"started": 2, "waiting": 0, "wait_p50_s": 400, "wait_max_s": 600, "wait_p90_s": 560},
    ),
    "what waits is counted until the end of the window": (
        SCOPE, "team", "cv",
        {"started": 0, "waiting": 1, "waiting_gpus": 16, "wait_p50_s": None,
         "longest_waiting_s": 600},
    ),
    "job runs that wait at the end of an earlier window": (
        EARLY, "team", "nlp", {"started": 0, "waiting": 2, "longest_waiting_s": 300},
    ),
    "reasons are those of the scheduler": (SCOPE, "reason", "QOSMaxGRESPerUser", {"waiting": 1}),
    "reasons that it does not give": (SCOPE, "reason", "not given", {"started": 2}),
}  # fmt: skip


@pytest.mark.parametrize(("scope", "group_by", "name", "expected"), WAITS.values(), ids=WAITS)
def test_waits_of_a_group(store, scope, group_by, name, expected):
    row = waits(store, group_by, scope)[name]

    assert {column: row[column] for column in expected} == pytest.approx(expected)


def test_sizes_are_by_the_gpus_asked_for(store):
    found = waits(store, "size")

    assert {name: row["started"] for name, row in found.items()} == {
        "1 GPU": 1, "2 to 8 GPUs": 1, "9 to 64 GPUs": 0,
    }  # fmt: skip


def test_a_team_has_its_own_waits(store):
    of_cv = Scope(from_ms=SCOPE.from_ms, to_ms=SCOPE.to_ms, team="cv")

    assert set(waits(store, "team", of_cv)) == {"cv"}
