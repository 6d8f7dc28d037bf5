"""Operations that the NCCL Inspector logged and that come after their steps were built."""

from tests.queries.conftest import durable
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


def operations(evidence, late_rank, steps):
    """Load one AllReduce a step, in which all wait 3 s for one rank."""
    evidence.load(
        "collectives",
        [
            {"cluster": "c", "node": "a", "pid": 100 + rank, "comm_id": "x", "rank": rank,
             "ranks": 2, "operation": "AllReduce", "is_p2p": False, "sequence_number": step,
             "exec_time_s": 0.1 if rank == late_rank else 3.1 if step == 4 else 0.1,
             "dumped_at": evidence.at(10 * step + 19), "started_at": evidence.at(10 * step + 5)}
            for step in range(steps)
            for rank in range(2)
        ],
        "nccl-inspector",
    )  # fmt: skip


def test_collectives_that_come_late_split_the_steps_they_belong_to(evidence):
    evidence.node("a", 2)
    evidence.job("1", 0, 93, ["a"], 2)
    lengths = [10.0] * 4 + [13.0] + [10.0] * 4
    for rank in range(2):
        at = 0.0
        events = []
        for number, length in enumerate(lengths):
            at += length
            events.append({"event": "step", "t": at, "step": number, "dur_s": length})
        evidence.events(
            "1", [*events, durable(8, 93)], rank=rank, gpu_uuid=f"c/a#{rank}", pid=100 + rank
        )
    evidence.job("2", 20_000, 20_100, ["a"], 2)  # hours later, so that theirs is closed
    evidence.store.build()

    operations(evidence, late_rank=1, steps=9)

    assert_equals_full_build(evidence)
    assert evidence.gpu_s().get("straggler_wait", 0) > 2
