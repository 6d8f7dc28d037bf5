"""Operations that the NCCL Inspector logged and that come after their steps were built."""

from tests.queries.conftest import built_together, durable, steps


@built_together(builds=2)
def test_collectives_that_come_late_split_the_steps_they_belong_to(cluster):
    """In the fifth of nine steps all wait 3 s for rank 1."""
    cluster.job_on_a_node("1", 0, 93, 2)
    ran = [*steps(0, 3, 0), *steps(4, 4, 40, 13.0), *steps(5, 8, 53), durable(8, 93)]
    for rank in range(2):
        named = {"gpu_uuid": cluster.gpu(f"a#{rank}"), "pid": cluster.first_pid + rank}
        cluster.events("1", ran, rank=rank, **named)
    cluster.job("2", 20_000, 20_100, ["a"], 2)  # hours later, so that theirs is closed
    yield
    for number in range(9):
        waited_s = [3.1 if number == 4 else 0.1, 0.1]
        cluster.all_reduces(waited_s, [10 * number + 5], first=number)
    yield
    assert cluster.gpu_s().get("straggler_wait", 0) > 2
