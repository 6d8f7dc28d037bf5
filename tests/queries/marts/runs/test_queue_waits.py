"""How long job runs waited for GPUs, by team, size and reason."""

import pytest
from tests.queries.conftest import Evidence

from goodput_queries.scope import Scope

START_MS = 1_800_000_000_000
SCOPE = Scope(from_ms=START_MS, to_ms=START_MS + 3_600_000)


@pytest.fixture(scope="module")
def store(new_store):
    """Give two job runs that waited, one that waits, one whose dependency is not met, no GPUs."""
    made = Evidence(new_store())
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
    made.store.build()
    yield made.store
    made.store.close()


def waits(store, group_by, scope=SCOPE):
    found = store.read("from marts.queue_waits", scope=scope).to_dicts()
    return {row["name"]: row for row in found if row["group_by"] == group_by}


def test_a_wait_goes_from_eligible_to_start(store):
    nlp = waits(store, "team")["nlp"]

    assert (nlp["started"], nlp["waiting"]) == (2, 0)
    assert (nlp["wait_p50_s"], nlp["wait_max_s"]) == (400, 600)
    assert nlp["wait_p90_s"] == pytest.approx(560)


def test_what_waits_is_counted_until_the_end_of_the_window(store):
    cv = waits(store, "team")["cv"]

    assert (cv["started"], cv["waiting"], cv["waiting_gpus"]) == (0, 1, 16)
    assert (cv["wait_p50_s"], cv["longest_waiting_s"]) == (None, 600)


def test_sizes_are_by_the_gpus_asked_for(store):
    found = waits(store, "size")

    assert {name: row["started"] for name, row in found.items()} == {
        "1 GPU": 1, "2 to 8 GPUs": 1, "9 to 64 GPUs": 0,
    }  # fmt: skip


def test_reasons_are_those_of_the_scheduler(store):
    found = waits(store, "reason")

    assert found["QOSMaxGRESPerUser"]["waiting"] == 1
    assert found["not given"]["started"] == 2


def test_a_job_run_waited_at_the_end_of_an_earlier_window(store):
    early = Scope(from_ms=START_MS, to_ms=START_MS + 300_000)

    nlp = waits(store, "team", early)["nlp"]

    assert (nlp["started"], nlp["waiting"], nlp["longest_waiting_s"]) == (0, 2, 300)


def test_a_team_has_its_own_waits(store):
    of_cv = Scope(from_ms=SCOPE.from_ms, to_ms=SCOPE.to_ms, team="cv")

    assert set(waits(store, "team", of_cv)) == {"cv"}
