"""However one GPU is shared, the shares of its holders add up to one device: given, expected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.queries.conftest import built_together

HOUR = 3600
HELD = """select split_part(job_run_key, '/', -1) as job_run, sum(gpu_ms) / 1000 as gpu_s
    from marts.ledger_segments
    where cluster = '{}' and job_run_key is not null group by all order by all"""


def label(owner, start, end, *, kind="pod", container="", instance=""):
    """Return what a label on the series of the GPU says."""
    return {"owner": owner, "start": start, "end": end, "kind": kind, "container": container,
            "instance": instance}  # fmt: skip


def loaded(cluster, labels, *, until=HOUR):
    """Load one GPU that is read to the end, with its owners by labels; return its UUID."""
    gpu = f"GPU-{cluster.name}"
    cluster.load("gpus", [
        {"cluster": cluster.name, "node": f"{cluster.name}-a", "gpu_uuid": gpu, "gpu_index": 0,
         "valid_from_at": cluster.at(0)}
    ], "dcgm")  # fmt: skip
    instances = sorted({one["instance"] for one in labels}) or [""]
    cluster.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": instance, "ts": cluster.at(second),
         "gpu_busy_ratio": 0.7, "is_flagged": False}
        for instance in instances
        for second in range(0, until + 1, 60)
    ], "dcgm")  # fmt: skip
    if labels:
        cluster.load("gpu_owners", [
            {"cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": one["instance"],
             "kind": one["kind"], "owner": one["owner"], "container": one["container"],
             "first_seen_at": cluster.at(one["start"]), "last_seen_at": cluster.at(one["end"])}
            for one in labels
        ], "dcgm")  # fmt: skip
    return gpu


def held(cluster):
    """Return the GPU-seconds of each owner."""
    rows = cluster.store.read(HELD.format(cluster.name)).rows()
    return {name.rpartition("@")[0]: float(gpu_s) for name, gpu_s in rows}


GIVEN_EXPECTED: dict[str, tuple[list[dict[str, Any]], dict[str, float]]] = {
    "one pod has the GPU": ([label("a", 0, HOUR)], {"a": 3600}),
    "a second pod comes": (
        [label("a", 0, HOUR), label("b", 1800, HOUR)],
        {"a": 2700, "b": 900},
    ),
    "a pod leaves and another comes later": (
        [label("a", 0, HOUR), label("b", 600, 1800), label("c", 3000, HOUR)],
        {"a": 600 + 600 + 1200 + 300, "b": 600, "c": 300},
    ),
    "three time slices": (
        [label("a", 0, HOUR), label("b", 0, HOUR), label("c", 0, HOUR)],
        {"a": 1200, "b": 1200, "c": 1200},
    ),
    "two jobs over MPS, by job labels": (
        [label("101", 0, HOUR, kind="hpc_job"), label("102", 0, HOUR, kind="hpc_job")],
        {"101": 1800, "102": 1800},
    ),
    "several containers of one pod": (
        [label("a", 0, HOUR, container="x"), label("a", 0, HOUR, container="y")],
        {"a": 3600},
    ),
}


@pytest.mark.parametrize("given", GIVEN_EXPECTED)
@built_together
def test_owners_by_labels_share_one_device(cluster, given):
    labels, expected = GIVEN_EXPECTED[given]
    loaded(cluster, labels)

    yield

    assert held(cluster) == expected
    assert sum(cluster.gpu_s().values()) == HOUR
    assert cluster.violations() == 0


@built_together
def test_readings_of_the_device_count_for_each_of_its_shares(cluster):
    loaded(cluster, [label("a", 0, HOUR), label("b", 1800, HOUR)])

    yield

    assert cluster.gpu_s() == {"busy_unclassified": 3600}


@built_together
def test_mig_instances_are_sevenths_and_the_rest_is_nobodys(cluster):
    gpu = loaded(cluster, [label("a", 0, HOUR, instance="1"), label("b", 1800, HOUR, instance="2")])
    cluster.load("gpu_instances", [
        {"cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": n, "profile": "3g.40gb",
         "compute_slices": 3, "valid_from_at": cluster.at(0)}
        for n in ("1", "2")
    ], "dcgm")  # fmt: skip

    yield

    assert {name: round(gpu_s) for name, gpu_s in held(cluster).items()} == {
        "a": round(3600 * 3 / 7),
        "b": round(1800 * 3 / 7),
    }
    assert sum(cluster.gpu_s().values()) == HOUR


@built_together
def test_shares_that_a_node_offers_are_those_of_the_scheduler(cluster):
    node = f"{cluster.name}-n"
    cluster.load("gpus", [
        {"cluster": cluster.name, "node": node, "gpu_uuid": f"{node}#0", "slurm_index": 0,
         "valid_from_at": cluster.at(0)}
    ], "kubernetes")  # fmt: skip
    cluster.load("gpu_instances", [
        {"cluster": cluster.name, "gpu_uuid": f"{node}#0", "gpu_instance": f"share.{n}/4",
         "profile": "shared 1/4", "compute_slices": 1, "slices_of": 4, "slurm_index": n}
        for n in range(4)
    ], "kubernetes")  # fmt: skip
    cluster.job("a", 0, HOUR, [node], 1)
    cluster.job("b", 0, 1800, [node], 2)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == {"a": 900, "b": 900}
    assert sum(cluster.gpu_s().values()) == HOUR


@built_together
def test_from_its_first_record_on_the_scheduler_has_the_whole_device(cluster):
    """What labels say of shares ends where a scheduler speaks."""
    gpu = loaded(cluster, [label("a", 0, HOUR), label("b", 0, HOUR)])
    cluster.job("1", 1800, HOUR, [f"{cluster.name}-a"], 1)
    cluster.load("holds", [
        {"cluster": cluster.name, "job_id_raw": "1", "submit_at": cluster.at(1800),
         "node": f"{cluster.name}-a", "gpu_uuid": gpu, "method": "hpc_job"}
    ])  # fmt: skip

    yield

    assert held(cluster) == {"a": 900, "b": 900, "1": 1800}
    assert cluster.violations() == 0


@built_together
def test_gpus_that_another_source_names_count_where_the_accounting_has_none(cluster):
    cluster.node(f"{cluster.name}-a", 8)
    cluster.job("1", 0, HOUR, [f"{cluster.name}-a"], None)
    cluster.load("holds", [
        {"cluster": cluster.name, "job_id_raw": "1", "submit_at": cluster.at(0),
         "node": f"{cluster.name}-a", "slurm_index": n, "method": "scontrol"}
        for n in range(5)
    ], "slurm")  # fmt: skip
    cluster.watched(HOUR)

    yield

    assert held(cluster) == {"1": 5 * 3600}
    assert sum(cluster.gpu_s().values()) == 8 * HOUR


@built_together
def test_a_value_that_is_blank_does_not_void_the_utilisation_beside_it(cluster):
    gpu = loaded(cluster, [label("a", 0, HOUR)], until=0)
    cluster.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": cluster.at(second), "gpu_busy_ratio": 0.9,
         "is_flagged": True}
        for second in range(60, HOUR + 1, 60)
    ], "dcgm")  # fmt: skip

    yield

    assert cluster.gpu_s() == {"busy_unclassified": 3600}


UNPLACED = """select split_part(split_part(job_run_key, '/', -1), '@', 1) as job_id, reason, gpu_ms
    from marts.unplaced order by 1"""


@built_together
def test_shards_and_mps_of_the_accounting_are_parts_that_add_up_to_one_device(cluster):
    node = f"{cluster.name}-g"
    cluster.node(node, 4)
    cluster.load("nodes", [
        {"cluster": cluster.name, "node": node,
         "gres": "gpu:a40:4(S:0-1),shard:a40:16(S:0-1),mps:a40:400(S:0-1)"}
    ])  # fmt: skip
    jobs = {"1": "cpu=4,gres/shard=2", "2": "gres/shard:a40=2", "3": "gres/mps=50", "4": None}
    for job, tres in jobs.items():
        cluster.job(job, 0, HOUR, [node], 4 if tres is None else 0, alloc_tres=tres)
    cluster.watched(HOUR)

    yield

    assert cluster.read(UNPLACED).rows() == [
        ("1", "part_of_gpu", HOUR * 500),
        ("2", "part_of_gpu", HOUR * 500),
        ("3", "part_of_gpu", HOUR * 500),
    ]
    assert held(cluster) == {"4": 4 * HOUR}


@built_together
def test_shards_of_unknown_size_are_named_and_not_guessed(cluster):
    cluster.node(f"{cluster.name}-g", 1)
    cluster.job("1", 0, HOUR, [f"{cluster.name}-g"], 0, alloc_tres="gres/shard=2")
    cluster.watched(HOUR)

    yield

    assert cluster.read(UNPLACED).rows() == []
    named = "select example from marts.data_quality where kind = 'jobs with shards of unknown size'"
    assert cluster.read(named).item() == f"{cluster.name}/1"


OFFERED = "select example from marts.data_quality where kind = 'more GPUs offered than there are'"


def offered(cluster, devices, slots):
    """Load a node that offers so many GPUs and of which telemetry lists so many; return it."""
    node = f"{cluster.name}-n"
    cluster.load("gpus", [
        {"cluster": cluster.name, "node": node, "gpu_uuid": f"{node}#{slot}", "slurm_index": slot,
         "valid_from_at": cluster.at(0)}
        for slot in range(slots)
    ], "kubernetes")  # fmt: skip
    cluster.load("gpus", [
        {"cluster": cluster.name, "node": node, "gpu_uuid": f"GPU-{cluster.name}-{gpu}",
         "gpu_index": gpu, "valid_from_at": cluster.at(0)}
        for gpu in range(devices)
    ], "dcgm")  # fmt: skip
    return node


@pytest.mark.parametrize(("devices", "slots"), [(1, 12), (2, 8)])
@built_together
def test_a_node_without_labels_has_as_many_gpus_as_telemetry_lists(cluster, devices, slots):
    node = offered(cluster, devices, slots)
    cluster.job("a", 0, HOUR, [node], 1)
    cluster.job("b", 0, HOUR, [node], slots // 2)
    cluster.watched(HOUR)

    yield

    assert sum(cluster.gpu_s().values()) == devices * HOUR
    assert held(cluster) == {"a": HOUR * devices / slots, "b": devices * HOUR / 2}
    sliced = f"select node, replicas from staging.stg_time_sliced where cluster = '{cluster.name}'"
    assert cluster.read(sliced).rows() == [(node, slots // devices)]
    assert cluster.violations() == 0


@built_together
def test_a_node_that_lost_a_gpu_of_its_telemetry_keeps_its_gpus(cluster):
    node = offered(cluster, 7, 8)
    cluster.watched(HOUR)

    yield

    assert sum(cluster.gpu_s().values()) == 8 * HOUR
    named = cluster.read(OFFERED)["example"].to_list()
    assert f"{cluster.name}/{node} offers 8, 7 listed" in named
