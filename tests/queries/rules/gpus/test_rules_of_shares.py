"""GPUs with time-slicing: each share is an equal part of one GPU."""

import pytest
from tests.queries.conftest import built_in, each, shown_by
from tests.queries.rules.jobs.unscheduled import holds

GPU = "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"


def uuid(cluster):
    """Return a UUID that no GPU of another cluster has."""
    return f"{GPU[:-2]}{int(cluster.name[1:]):02x}"


def shares(evidence, gpu, count, since=0, first=0):
    """Load a GPU, by UUID or slot, with so many shares from a time on."""
    index = int(gpu.split("#")[1]) if "#" in gpu else 0
    named = {"node": "n", "gpu_uuid": gpu, "slurm_index": index, "gpu_model": "a10"}
    evidence.add("gpus", named, source="kubernetes")
    parts = [{"gpu_instance": f"share.{number}/{count}", "slurm_index": first + number}
             for number in range(count)]  # fmt: skip
    evidence.add("gpu_instances", *parts, source="kubernetes", gpu_uuid=gpu, valid_from_at=since,
                 profile=f"shared 1/{count}", compute_slices=1, slices_of=count)  # fmt: skip


def pod(evidence, name, start, end, gpu=None):
    """Add a pod that has one share, of a GPU that telemetry names or of any."""
    evidence.job(name, start, end, ["n"], 1)
    named = {"gpus": 1} if gpu is None else {"gpu_uuid": gpu, "gpu_instance": ""}
    times = {"start_at": start, "end_at": end}
    evidence.hold(name, submit=start, node="n", method="pod", **times, **named)


def held_gpu_s(evidence):
    """Return GPU-seconds by job, None for what nobody held."""
    assert evidence.own("job_run_key", "intermediate.int_hold_conflicts") == []
    rows = evidence.read("select job_id, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all")
    return dict(rows.rows())


@each(("n#0", False), (GPU, False), (GPU, True))
def test_as_many_pods_as_shares_make_one_gpu(cluster, gpu, is_named):
    gpu = uuid(cluster) if gpu == GPU else gpu
    shares(cluster, gpu, 4)
    cluster.watched(3600)
    for number in range(4):
        pod(cluster, f"p{number}", 0, 3600, gpu if is_named else None)
    yield
    assert held_gpu_s(cluster) == {f"p{number}": 900 for number in range(4)}


def test_shares_of_a_gpu_that_is_known_by_number_are_those_of_the_uuid(cluster):
    """One Prometheus has Kubernetes, the exporter is scraped by another: it names the GPU."""
    shares(cluster, "n#0", 2)
    known = {"gpu_uuid": uuid(cluster), "gpu_index": 0, "gpu_model": "a10"}
    cluster.add("gpus", known, source="dcgm", node="n")
    cluster.watched(1000)
    pod(cluster, "p", 0, 1000)
    yield
    assert held_gpu_s(cluster) == {"p": 500, None: 500}
    columns = "gpu_uuid, gpu_instance, mig_profile, share_lo, share_hi, share_of"
    assert cluster.own(columns, "intermediate.int_gpu_units") == [
        (uuid(cluster), f"share.{n}/2", "shared 1/2", n, n + 1, 2) for n in range(2)
    ]


# what it shows: (GPU, shares, from when, first number), (pod, begin, end), end, GPU-seconds held
test_held_shares = shown_by({
    "shares that nobody has are free": (
        [("n#0", 4, 0, 0)], [("p", 0, 1800)], 3600, {"p": 450, None: 3150}),
    "pods go on shares of one GPU after the other": (
        [("n#0", 2, 0, 0), ("n#1", 2, 0, 2)], [(f"p{n}", 0, 1000) for n in range(3)], 1000,
        {"p0": 500, "p1": 500, "p2": 500, None: 500}),
    "a pod that began before the first sharing was seen had a share": (
        [("n#0", 2, 500, 0)], [("p", 0, 1000)], 1000, {"p": 500, None: 500}),
    "a GPU that is allocated in more shares is repartitioned": (
        [("n#0", 2, 0, 0), ("n#0", 4, 1000, 0)], [("p", 0, 1000), ("q", 1000, 2000)], 2000,
        {"p": 500, "q": 250, None: 1250}),
}, read=held_gpu_s, load=lambda c, cut, pods, end: [
    *(shares(c, *of) for of in cut), c.watched(end), *(pod(c, *of) for of in pods)])  # fmt: skip


PARTS = {"1": (0, 1800, 2), "2": (600, 3600, 3), "3": (900, 3000, 2), "4": (2000, None, 1)}


@pytest.mark.parametrize("loads", [["1234"], ["4", "31", "2"]], ids=["at once", "out of order"])
@built_in(3)
def test_parts_of_the_accounting_may_come_in_any_order(cluster, loads):
    cluster.node("g", 2)
    cluster.add("nodes", node="g", gres="gpu:2,shard:8")
    cluster.watched(3600)
    for jobs in loads:
        for job in jobs:
            start, end, shards = PARTS[job]
            state = "RUNNING" if end is None else "COMPLETED"
            cluster.job(job, start, end, ["g"], 0, state, alloc_tres=f"gres/shard={shards}")
        yield
    assert holds(cluster) == [("g#0", "2", 600, 3600, "assumed"), ("g#1", "1", 0, 1800, "assumed"),
                              ("g#1", "3", 900, 3000, "assumed"),
                              ("g#1", "4", 2000, None, "assumed")]  # fmt: skip
    assert held_gpu_s(cluster) == {"1": 900, "2": 2250, "3": 1050, "4": 400, None: 2600}
