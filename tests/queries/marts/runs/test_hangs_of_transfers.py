"""Transfers between two ranks that never ended, by Flight Recorder dumps: pipelines hang so."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.marts.runs.hung_ranks import hangs, transfers

PAIR = {"ranks": (0, 1)}
WAITS = "has not launched send 0->1 7 of pp, in which 1 rank waits"
# what it shows: open operations by rank, what differs from the usual, columns, hangs
OPEN = {
    "the rank that did not launch the other side is named": (
        {0: [], 1: ["recv 1<-0"]}, PAIR,
        "operation, sequence_number, what, culprit_ranks, waiting_ranks, confidence, evidence",
        [("send 0->1", 7, "missing", [0], [1], "Not confirmed", WAITS)],
    ),
    "of a pipeline that waits in a row the first rank is the root": (
        {0: [], 1: ["recv 1<-0"], 2: ["recv 2<-1"], 3: ["recv 3<-2"]}, {},
        "operation, culprit_ranks, is_root",
        [("send 0->1", [0], True), ("send 1->2", [1], False), ("send 2->3", [2], False)],
    ),
    "a transfer that both ranks stand in names nobody": (
        {0: ["send 0->1"], 1: ["recv 1<-0"]}, PAIR,
        "what, culprit_ranks, waiting_ranks, confidence",
        [("operation stands", None, [0, 1], "Not confirmed")],
    ),
    "a send that nobody receives names the receiver": (
        {0: ["send 0->1", "send 0->1"], 1: []}, PAIR, "operation, culprit_ranks",
        [("send 0->1", [1])],
    ),
    "a rank without a dump is named but not confirmed": (
        {1: ["recv 1<-0"]}, PAIR, "what, culprit_ranks, confidence",
        [("no_dump", [0], "Not confirmed")],
    ),
    "ranks of a group become those of the job": (
        {12: [], 28: ["recv 1<-0"]}, {"ranks": (12, 28)},
        "operation, culprit_ranks, waiting_ranks", [("send 12->28", [12], [28])],
    ),
    "what is done is no hang": (
        {0: [], 1: ["recv 1<-0"]}, {**PAIR, "state": "completed"}, "hang_key", [],
    ),
    "what is young is no hang": (
        {0: [], 1: ["recv 1<-0"]}, {**PAIR, "since": 130}, "hang_key", [],
    ),
    "what names no ranks is no hang": ({0: [], 1: ["coalesced"]}, PAIR, "hang_key", []),
}  # fmt: skip


@pytest.mark.parametrize(("reported", "more", "columns", "expected"), OPEN.values(), ids=OPEN)
@built_together
def test_hangs_of_transfers(cluster, reported, more, columns, expected):
    transfers(cluster, reported, **more)
    yield
    assert hangs(cluster, columns) == expected
