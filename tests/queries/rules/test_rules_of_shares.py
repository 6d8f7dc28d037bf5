"""GPUs with time-slicing: each share is an equal part of one GPU."""

from __future__ import annotations

import pytest

from goodput_queries.check import check

GPU = "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"


def shares(evidence, gpu, count, since=0, first=0):
    """Load a GPU, by UUID or slot, with so many shares from a time on."""
    index = int(gpu.split("#")[1]) if "#" in gpu else 0
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "n", "gpu_uuid": gpu, "slurm_index": index, "gpu_model": "a10"}],
        "kubernetes",
    )
    evidence.load(
        "gpu_instances",
        [
            {
                "cluster": "c", "gpu_uuid": gpu, "gpu_instance": f"share.{number}/{count}",
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
                "cluster": "c", "job_id_raw": name, "submit_at": evidence.at(start), "node": "n",
                "method": "pod", "start_at": evidence.at(start), "end_at": evidence.at(end), **hold,
            }
        ],
    )  # fmt: skip


def held_gpu_s(evidence):
    """Build; return GPU-seconds by job, None for what nobody held."""
    evidence.store.build()
    assert check(evidence.store)["violations"].sum() == 0
    assert evidence.store.read("from intermediate.int_hold_conflicts").is_empty()
    rows = evidence.store.read(
        "select job_id, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all"
    )
    return dict(rows.rows())


@pytest.mark.parametrize("gpu", ["n#0", GPU])
@pytest.mark.parametrize("is_named", [True, False])
def test_as_many_pods_as_shares_make_one_gpu(evidence, gpu, is_named):
    shares(evidence, gpu, 4)
    evidence.watched(3600)
    for number in range(4):
        pod(evidence, f"p{number}", 0, 3600, gpu if is_named and gpu == GPU else None)

    assert held_gpu_s(evidence) == {f"p{number}": 900 for number in range(4)}


def test_shares_that_nobody_has_are_free(evidence):
    shares(evidence, "n#0", 4)
    evidence.watched(3600)
    pod(evidence, "p", 0, 1800)

    assert held_gpu_s(evidence) == {"p": 450, None: 3150}


def test_shares_of_three_balance_to_the_millisecond(evidence):
    shares(evidence, "n#0", 3)
    evidence.watched(1000)
    for number in range(3):
        pod(evidence, f"p{number}", 0, 1000)

    held = held_gpu_s(evidence)

    assert sum(held.values()) == pytest.approx(1000, abs=1e-9)
    assert held["p0"] == pytest.approx(1000 / 3, abs=0.002)


def test_pods_go_on_shares_of_one_gpu_after_the_other(evidence):
    for index in range(2):
        shares(evidence, f"n#{index}", 2, first=2 * index)
    evidence.watched(1000)
    for number in range(3):
        pod(evidence, f"p{number}", 0, 1000)

    assert held_gpu_s(evidence) == {"p0": 500, "p1": 500, "p2": 500, None: 500}


def test_shares_of_a_gpu_that_is_known_by_number_are_those_of_the_uuid(evidence):
    """One Prometheus has Kubernetes, the exporter is scraped by another: it names the GPU."""
    shares(evidence, "n#0", 2)
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "n", "gpu_uuid": GPU, "gpu_index": 0, "gpu_model": "a10"}],
        "dcgm",
    )
    evidence.watched(1000)
    pod(evidence, "p", 0, 1000)

    assert held_gpu_s(evidence) == {"p": 500, None: 500}
    units = evidence.store.read(
        "select gpu_uuid, gpu_instance, mig_profile, share_lo, share_hi, share_of "
        "from intermediate.int_gpu_units order by 2"
    )
    assert units.rows() == [
        (GPU, "share.0/2", "shared 1/2", 0, 1, 2), (GPU, "share.1/2", "shared 1/2", 1, 2, 2),
    ]  # fmt: skip


def test_a_pod_that_began_before_shares_were_seen_had_a_share(evidence):
    """The first reported sharing of a GPU also holds before."""
    shares(evidence, "n#0", 2, since=500)
    evidence.watched(1000)
    pod(evidence, "p", 0, 1000)

    assert held_gpu_s(evidence) == {"p": 500, None: 500}


def test_a_gpu_that_is_allocated_in_more_shares_is_repartitioned(evidence):
    shares(evidence, "n#0", 2)
    shares(evidence, "n#0", 4, since=1000)
    evidence.watched(2000)
    pod(evidence, "p", 0, 1000)
    pod(evidence, "q", 1000, 2000)

    assert held_gpu_s(evidence) == {"p": 500, "q": 250, None: 1250}
