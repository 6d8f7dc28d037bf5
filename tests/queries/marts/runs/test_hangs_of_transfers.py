"""Transfers between two ranks that never ended, by Flight Recorder dumps: pipelines hang so."""

import pytest


@pytest.fixture
def dumps(evidence):
    """Return a maker of dumps: by rank the open operations, as PyTorch names them."""

    def add(reported, *, ranks=(0, 1, 2, 3), since=100, last=140, state="started"):
        base = {"dump_set": "job/rank_*", "group_name": "pp", "group_description": "pp"}
        evidence.load(
            "flight_groups",
            [
                {
                    **base, "rank": rank, "ranks": list(ranks), "last_enqueued": None,
                    "last_completed": None, "last_moment_at": evidence.at(last),
                }
                for rank in reported
            ],
            "flight-recorder",
        )  # fmt: skip
        records = [
            {
                **base, "rank": rank, "record_id": number, "sequence_number": 0,
                "p2p_sequence_number": 7 + number, "operation": operation, "is_p2p": True,
                "state": state, "created_at": evidence.at(since + number), "timeout_s": 30.0,
            }
            for rank, operations in reported.items()
            for number, operation in enumerate(operations)
        ]  # fmt: skip
        if records:
            evidence.load("flight_records", records, "flight-recorder")

    return add


def hangs(evidence, *columns):
    evidence.store.build()
    return evidence.store.read(f"select {', '.join(columns)} from marts.hangs order by all").rows()


def test_the_rank_that_did_not_launch_the_other_side_is_named(evidence, dumps):
    dumps({0: [], 1: ["recv 1<-0"]}, ranks=(0, 1))

    found = hangs(
        evidence, "operation", "sequence_number", "what", "culprit_ranks", "waiting_ranks",
        "confidence", "evidence",
    )  # fmt: skip

    text = "has not launched send 0->1 7 of pp, in which 1 rank waits"
    assert found == [("send 0->1", 7, "missing", [0], [1], "Not confirmed", text)]


def test_of_a_pipeline_that_waits_in_a_row_the_first_rank_is_the_root(evidence, dumps):
    dumps({0: [], 1: ["recv 1<-0"], 2: ["recv 2<-1"], 3: ["recv 3<-2"]})

    assert hangs(evidence, "operation", "culprit_ranks", "is_root") == [
        ("send 0->1", [0], True), ("send 1->2", [1], False), ("send 2->3", [2], False),
    ]  # fmt: skip


def test_a_transfer_that_both_ranks_stand_in_names_nobody(evidence, dumps):
    dumps({0: ["send 0->1"], 1: ["recv 1<-0"]}, ranks=(0, 1))

    found = hangs(evidence, "what", "culprit_ranks", "waiting_ranks", "confidence")
    assert found == [("operation stands", None, [0, 1], "Not confirmed")]


def test_a_send_that_nobody_receives_names_the_receiver(evidence, dumps):
    dumps({0: ["send 0->1", "send 0->1"], 1: []}, ranks=(0, 1))

    assert hangs(evidence, "operation", "culprit_ranks") == [("send 0->1", [1])]


def test_a_rank_without_a_dump_is_named_but_not_confirmed(evidence, dumps):
    dumps({1: ["recv 1<-0"]}, ranks=(0, 1))

    found = hangs(evidence, "what", "culprit_ranks", "confidence")
    assert found == [("no_dump", [0], "Not confirmed")]


def test_ranks_of_a_group_become_those_of_the_job(evidence, dumps):
    dumps({12: [], 28: ["recv 1<-0"]}, ranks=(12, 28))

    assert hangs(evidence, "operation", "culprit_ranks", "waiting_ranks") == [
        ("send 12->28", [12], [28])
    ]


@pytest.mark.parametrize(
    ("operation", "more"),
    [("recv 1<-0", {"state": "completed"}), ("recv 1<-0", {"since": 130}), ("coalesced", {})],
)
def test_what_is_done_young_or_names_no_ranks_is_no_hang(evidence, dumps, operation, more):
    dumps({0: [], 1: [operation]}, ranks=(0, 1), **more)

    assert hangs(evidence, "hang_key") == []
