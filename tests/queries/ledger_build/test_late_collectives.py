"""Operations that the NCCL Inspector logged and that come after their steps were built."""

from tests.queries.conftest import built_together, durable


def operations(cluster, late_rank, steps):
    """Load one AllReduce a step, in which all wait 3 s for one rank."""
    cluster.load(
        "collectives",
        [
            {"cluster": cluster.name, "node": "a", "pid": 100 + rank, "comm_id": "x", "rank": rank,
             "ranks": 2, "operation": "AllReduce", "is_p2p": False, "sequence_number": step,
             "exec_time_s": 0.1 if rank == late_rank else 3.1 if step == 4 else 0.1,
             "dumped_at": cluster.at(10 * step + 19), "started_at": cluster.at(10 * step + 5)}
            for step in range(steps)
            for rank in range(2)
        ],
        "nccl-inspector",
    )  # fmt: skip


@built_together(builds=2)
def test_collectives_that_come_late_split_the_steps_they_belong_to(cluster):
    cluster.job_on_a_node("1", 0, 93, 2)
    lengths = [10.0] * 4 + [13.0] + [10.0] * 4
    for rank in range(2):
        at = 0.0
        events = []
        for number, length in enumerate(lengths):
            at += length
            events.append({"event": "step", "t": at, "step": number, "dur_s": length})
        cluster.events(
            "1",
            [*events, durable(8, 93)],
            rank=rank,
            gpu_uuid=cluster.gpu(f"a#{rank}"),
            pid=100 + rank,
        )
    cluster.job("2", 20_000, 20_100, ["a"], 2)  # hours later, so that theirs is closed
    yield
    operations(cluster, late_rank=1, steps=9)
    yield
    assert cluster.gpu_s().get("straggler_wait", 0) > 2
