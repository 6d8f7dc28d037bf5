"""GPUs, and parts of them, that squeue, scontrol or GresUsed list and the accounting does not."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.rules.gpus.test_shares_of_one_device import HOUR, held


@built_together
def test_shards_and_mps_that_the_queue_alone_lists_are_the_same_parts(cluster):
    node = f"{cluster.name}-g"
    cluster.node(node, 4)
    cluster.add("nodes", node=node, gres="gpu:a40:4,shard:a40:16,mps:a40:400")
    for job, kind, amount in (("1", "shard", 2), ("2", "mps", 50)):
        cluster.job(job, 0, HOUR, [node], None)
        part = {"job_id_raw": job, "submit_at": 0, "node": node, "kind": kind, "amount": amount}
        cluster.add("gpu_parts", part, source="slurm")
    cluster.watched(HOUR)

    yield

    assert held(cluster) == {"1": 1800, "2": 1800}


@pytest.mark.parametrize(
    ("others", "expected"),
    [([], {"1": 3 * HOUR}), (["2"], {})],
    ids=["alone on the node", "beside another job"],
)
@built_together
def test_gpus_that_a_node_lists_as_used_are_of_the_only_job_on_it(cluster, others, expected):
    node = f"{cluster.name}-g"
    cluster.node(node, 4)
    cluster.add("nodes", node=node, gpus_used=3, used_indices=[0, 1, 3], observed_at=1800)
    for job in ("1", *others):
        cluster.job(job, 0, HOUR, [node], None)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == expected
