"""GPUs with time-slicing: each share is an equal part of one GPU."""

import pytest
from tests.queries.conftest import built_together

GPU = "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"


def uuid(cluster):
    """Return a UUID that no GPU of another cluster has."""
    return f"{GPU[:-2]}{int(cluster.name[1:]):02x}"


def shares(evidence, gpu, count, since=0, first=0):
    """Load a GPU, by UUID or slot, with so many shares from a time on."""
    index = int(gpu.split("#")[1]) if "#" in gpu else 0
    evidence.load(
        "gpus",
        [
            {
                "cluster": evidence.name,
                "node": "n",
                "gpu_uuid": gpu,
                "slurm_index": index,
                "gpu_model": "a10",
            }
        ],
        "kubernetes",
    )
    evidence.load(
        "gpu_instances",
        [
            {
                "cluster": evidence.name, "gpu_uuid": gpu,
                "gpu_instance": f"share.{number}/{count}",
                "profile": f"shared 1/{count}", "compute_slices": 1, "slices_of": count,
                "slurm_index": first + number, "valid_from_at": evidence.at(since),
            }
            for number in range(count)
        ],
        "kubernetes",
    )  # fmt: skip


def pod(evidence, name, start, end, gpu=None):
    """Add a pod that has one share, of a GPU that telemetry names or of any."""
    evidence.job(name, start, end, ["n"], 1)
    hold = {"gpus": 1} if gpu is None else {"gpu_uuid": gpu, "gpu_instance": ""}
    evidence.load(
        "holds",
        [
            {
                "cluster": evidence.name, "job_id_raw": name, "submit_at": evidence.at(start),
                "node": "n", "method": "pod", "start_at": evidence.at(start),
                "end_at": evidence.at(end), **hold,
            }
        ],
    )  # fmt: skip


def held_gpu_s(evidence):
    """Build; return GPU-seconds by job, None for what nobody held."""
    evidence.build()
    assert evidence.violations() == 0
    assert evidence.store.read(
        "from intermediate.int_hold_conflicts where cluster = $1", [evidence.name]
    ).is_empty()
    rows = evidence.read("select job_id, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all")
    return dict(rows.rows())


@pytest.mark.parametrize("gpu", ["n#0", GPU])
@pytest.mark.parametrize("is_named", [True, False])
@built_together
def test_as_many_pods_as_shares_make_one_gpu(cluster, gpu, is_named):
    gpu = uuid(cluster) if gpu == GPU else gpu
    shares(cluster, gpu, 4)
    cluster.watched(3600)
    for number in range(4):
        pod(cluster, f"p{number}", 0, 3600, gpu if is_named and gpu != "n#0" else None)
    yield
    assert held_gpu_s(cluster) == {f"p{number}": 900 for number in range(4)}


@built_together
def test_shares_that_nobody_has_are_free(cluster):
    shares(cluster, "n#0", 4)
    cluster.watched(3600)
    pod(cluster, "p", 0, 1800)
    yield
    assert held_gpu_s(cluster) == {"p": 450, None: 3150}


@built_together
def test_shares_of_three_balance_to_the_millisecond(cluster):
    shares(cluster, "n#0", 3)
    cluster.watched(1000)
    for number in range(3):
        pod(cluster, f"p{number}", 0, 1000)
    yield
    held = held_gpu_s(cluster)

    assert sum(held.values()) == pytest.approx(1000, abs=1e-9)
    assert held["p0"] == pytest.approx(1000 / 3, abs=0.002)


@built_together
def test_pods_go_on_shares_of_one_gpu_after_the_other(cluster):
    for index in range(2):
        shares(cluster, f"n#{index}", 2, first=2 * index)
    cluster.watched(1000)
    for number in range(3):
        pod(cluster, f"p{number}", 0, 1000)
    yield
    assert held_gpu_s(cluster) == {"p0": 500, "p1": 500, "p2": 500, None: 500}


@built_together
def test_shares_of_a_gpu_that_is_known_by_number_are_those_of_the_uuid(cluster):
    """One Prometheus has Kubernetes, the exporter is scraped by another: it names the GPU."""
    shares(cluster, "n#0", 2)
    cluster.load(
        "gpus",
        [{"cluster": cluster.name, "node": "n", "gpu_uuid": uuid(cluster), "gpu_index": 0,
          "gpu_model": "a10"}],
        "dcgm",
    )  # fmt: skip
    cluster.watched(1000)
    pod(cluster, "p", 0, 1000)
    yield
    assert held_gpu_s(cluster) == {"p": 500, None: 500}
    units = cluster.store.read(
        "select gpu_uuid, gpu_instance, mig_profile, share_lo, share_hi, share_of "
        "from intermediate.int_gpu_units where cluster = $1 order by 2",
        [cluster.name],
    )
    assert units.rows() == [
        (uuid(cluster), "share.0/2", "shared 1/2", 0, 1, 2),
        (uuid(cluster), "share.1/2", "shared 1/2", 1, 2, 2),
    ]


@built_together
def test_a_pod_that_began_before_shares_were_seen_had_a_share(cluster):
    """The first reported sharing of a GPU also holds before."""
    shares(cluster, "n#0", 2, since=500)
    cluster.watched(1000)
    pod(cluster, "p", 0, 1000)
    yield
    assert held_gpu_s(cluster) == {"p": 500, None: 500}


@built_together
def test_a_gpu_that_is_allocated_in_more_shares_is_repartitioned(cluster):
    shares(cluster, "n#0", 2)
    shares(cluster, "n#0", 4, since=1000)
    cluster.watched(2000)
    pod(cluster, "p", 0, 1000)
    pod(cluster, "q", 1000, 2000)
    yield
    assert held_gpu_s(cluster) == {"p": 500, "q": 250, None: 1250}
