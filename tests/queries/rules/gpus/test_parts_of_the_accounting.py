"""Shards, MPS and GPUs in use that Slurm or its queue lists: each part is on one GPU of a node."""

from tests.queries.conftest import each, shown_by
from tests.queries.rules.gpus.test_shares_of_one_device import HOUR, held, label, loaded

UNPLACED = """select split_part(split_part(job_run_key, '/', -1), '@', 1) as job_id, reason, gpu_ms
    from marts.unplaced order by 1"""
FOUR_GPUS = "gpu:a40:4(S:0-1),shard:a40:16(S:0-1),mps:a40:400(S:0-1)"


# what it shows: (job, TRES or GPUs, start, end) on FOUR_GPUS of 4 shards or 100 of MPS, GPU-seconds
@each({
    "two jobs fill a GPU": (
        [("1", "gres/shard=2", 0, HOUR), ("2", "cpu=4,gres/shard:a40=2", 0, HOUR)],
        {"1": 1800, "2": 1800}),
    "beside whole GPUs": (
        [("1", "gres/shard=2", 0, HOUR), ("2", 3, 0, HOUR)], {"1": 1800, "2": 3 * HOUR}),
    "a second job comes": (
        [("1", "gres/shard=1", 0, HOUR), ("2", "gres/shard=3", 1800, HOUR)], {"1": 900, "2": 1350}),
    "more than one GPU has": (
        [(f"{n}", "gres/shard=3", 0, HOUR) for n in range(1, 5)],
        {f"{n}": 2700 for n in range(1, 5)}),
    "half of MPS": ([("1", "gres/mps=50", 0, HOUR)], {"1": 1800}),
    "shards and MPS are on two GPUs": (
        [("1", "gres/shard=3", 0, HOUR), ("2", "gres/mps=25", 0, HOUR), ("3", 2, 0, HOUR)],
        {"1": 2700, "2": 900, "3": 2 * HOUR}),
    "a GPU is whole again": (
        [("1", "gres/shard=2", 0, 1800), ("2", 4, 1800, HOUR)], {"1": 900, "2": 4 * 1800}),
    "a job requeued": (
        [("1", "gres/shard=2", 0, 900), ("1", "gres/shard=2", 1800, HOUR)], {"1": 450 + 900}),
    "one that still runs": ([("1", "gres/shard=1", 1800, None)], {"1": 450}),
    "beside a GPU that a source names for another job": (
        [("1", "gres/shard=2", 0, HOUR), ("named", 1, 0, HOUR)], {"1": 1800, "named": HOUR}),
})  # fmt: skip
def test_parts_of_the_accounting_share_one_device(cluster, jobs, expected):
    node = f"{cluster.name}-g"
    cluster.node(node, 4, model="a40")
    cluster.add("nodes", node=node, gres=FOUR_GPUS)
    for job, asked, start, end in jobs:
        tres, gpus = (asked, 0) if isinstance(asked, str) else (None, asked)
        state = "RUNNING" if end is None else "COMPLETED"
        cluster.job(job, start, end, [node], gpus, state, alloc_tres=tres)
        if job == "named":
            cluster.hold(job, node=node, slurm_index=3)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == expected
    found = cluster.gpu_s()
    assert sum(found.values()) == 4 * HOUR
    free = sum(found.get(name, 0) for name in ("idle_no_demand", "idle_with_demand"))
    assert free == 4 * HOUR - sum(expected.values())
    assert cluster.read(UNPLACED).rows() == []


def asked_for(gres, *tres):
    """Return what loads a node with as many GPUs as `gres` lists, and jobs 1, 2 on it."""

    def load(cluster):
        node = f"{cluster.name}-g"
        cluster.node(node, int(gres.split(":")[2][0]) if gres else 1, model="a40")
        if gres:
            cluster.add("nodes", node=node, gres=gres)
        for job, amount in enumerate(tres, 1):
            cluster.job(str(job), 0, HOUR, [node], 0, alloc_tres=amount)
        cluster.watched(HOUR)

    return load


def queued(cluster):
    """Load a shard and a part of MPS that the queue alone lists."""
    asked_for("gpu:a40:4,shard:a40:16,mps:a40:400")(cluster)
    for job, kind, amount in (("1", "shard", 2), ("2", "mps", 50)):
        node = f"{cluster.name}-g"
        cluster.job(job, 0, HOUR, [node], None)
        part = {"job_id_raw": job, "submit_at": 0, "node": node, "kind": kind, "amount": amount}
        cluster.add("gpu_parts", part, source="slurm")


def labelled(cluster):
    """Load a part of one of two GPUs whose series has the job's id."""
    gpu, node = loaded(cluster, [label("1", 0, HOUR, kind="hpc_job")]), f"{cluster.name}-a"
    second = {"gpu_uuid": f"{gpu}-1", "gpu_index": 1, "valid_from_at": 0}
    cluster.add("gpus", second, source="dcgm", node=node)
    cluster.add("nodes", node=node, gres="gpu:2,shard:8")
    cluster.job("1", 0, HOUR, [node], 0, alloc_tres="gres/shard=2")


def in_use(cluster, jobs):
    """Load a node that lists three of its GPUs as used, and jobs on it."""
    node = f"{cluster.name}-g"
    cluster.node(node, 4, watched=HOUR)
    cluster.add("nodes", node=node, gpus_used=3, used_indices=[0, 1, 3], observed_at=1800)
    for job in jobs:
        cluster.job(job, 0, HOUR, [node], None)


def labelled_first(cluster):
    """Load a GPU with labels of four jobs, two of which the accounting knows."""
    gpu = loaded(cluster, [label(job, 0, HOUR, kind="hpc_job") for job in ("8", "9")])
    node = f"{cluster.name}-a"
    cluster.add("nodes", node=node, gres="gpu:1,shard:4")
    for job in ("1", "2"):
        cluster.job(job, 1800, HOUR, [node], 0, alloc_tres="gres/shard=2")
    again = [label(job, 1800, HOUR, kind="hpc_job") for job in ("1", "2")]
    cluster.add("gpu_owners", *again, source="dcgm", gpu_uuid=gpu)


NAMED = "select example from marts.data_quality where kind = 'jobs with shards of unknown size'"
test_other_parts = shown_by({
    "parts that no GPU has room for are beside the ledger": (
        asked_for("gpu:a40:1,shard:a40:4", "gres/shard=3", "gres/shard=2"),
        lambda c: (held(c), c.read(UNPLACED).rows()),
        ({"1": 2700}, [("2", "part_of_gpu", HOUR * 500)])),
    "shards of unknown size are named and not guessed": (
        asked_for("", "gres/shard=2"), lambda c: (c.read(UNPLACED).rows(), c.read(NAMED).rows()),
        lambda c: ([], [(f"{c.name}/1",)])),
    "shards and MPS that the queue alone lists are the same parts": (
        queued, held, {"1": 1800, "2": 1800}),
    "the GPU with the job's id on its series is the one of its part": (
        labelled, lambda c: (held(c), c.own("distinct gpu_uuid", "intermediate.int_holds")),
        lambda c: ({"1": 1800}, [(f"GPU-{c.name}",)])),
    "from its first record on the scheduler decides who shares a GPU with labels": (
        labelled_first, lambda c: (held(c), c.gpu_s()),
        ({"8": 900, "9": 900, "1": 900, "2": 900}, {"busy_unclassified": HOUR})),
    "GPUs that a node lists as used are of the only job on it": (
        lambda c: in_use(c, "1"), held, {"1": 3 * HOUR}),
    "of two jobs they are nobody's": (lambda c: in_use(c, "12"), held, {}),
})  # fmt: skip
