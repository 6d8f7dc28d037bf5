"""However one GPU is shared, the shares of its holders add up to one device: given, expected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.queries.conftest import built_together

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

HOUR = 3600
HELD = """select split_part(job_run_key, '/', -1) as job_run, sum(gpu_ms) / 1000 as gpu_s
    from marts.ledger_segments
    where cluster = '{}' and job_run_key is not null group by all order by all"""


def label(
    owner: str, start: int, end: int, *, kind: str = "pod", container: str = "", instance: str = ""
) -> dict[str, Any]:
    """Return what a label on the series of the GPU says."""
    return {"owner": owner, "start": start, "end": end, "kind": kind, "container": container,
            "instance": instance}  # fmt: skip


def loaded(cluster: Any, labels: list[dict[str, Any]], *, until: int = HOUR) -> str:
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


def held(cluster: Any) -> dict[str, float]:
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
def test_owners_by_labels_share_one_device(cluster: Any, given: str) -> None:
    labels, expected = GIVEN_EXPECTED[given]
    loaded(cluster, labels)

    yield

    assert held(cluster) == expected
    assert sum(cluster.gpu_s().values()) == HOUR
    assert cluster.violations() == 0


@built_together
def test_readings_of_the_device_count_for_each_of_its_shares(cluster: Any) -> None:
    loaded(cluster, [label("a", 0, HOUR), label("b", 1800, HOUR)])

    yield

    assert cluster.gpu_s() == {"busy_unclassified": 3600}


@built_together
def test_mig_instances_are_sevenths_and_the_rest_is_nobodys(cluster: Any) -> None:
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
def test_shares_that_a_node_offers_are_those_of_the_scheduler(cluster: Any) -> None:
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
def test_from_its_first_record_on_the_scheduler_has_the_whole_device(cluster: Any) -> None:
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
def test_gpus_that_another_source_names_count_where_the_accounting_has_none(cluster: Any) -> None:
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
def test_a_value_that_is_blank_does_not_void_the_utilisation_beside_it(cluster: Any) -> None:
    gpu = loaded(cluster, [label("a", 0, HOUR)], until=0)
    cluster.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": cluster.at(second), "gpu_busy_ratio": 0.9,
         "is_flagged": True}
        for second in range(60, HOUR + 1, 60)
    ], "dcgm")  # fmt: skip

    yield

    assert cluster.gpu_s() == {"busy_unclassified": 3600}


@pytest.mark.parametrize(
    ("flagged", "category"),
    [("power_w", "busy_unclassified"), ("gpm", "unknown"), (None, "unknown")],
    ids=["another value", "its shares", "an earlier version does not say"],
)
@built_together
def test_a_flag_of_nvml_voids_the_reading_where_its_shares_are_incomplete(
    cluster: Any, flagged: str | None, category: str
) -> None:
    gpu = loaded(cluster, [label("a", 0, HOUR)], until=0)
    cluster.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": cluster.at(second), "gpu_busy_ratio": 0.9,
         "is_flagged": True, "flagged_metrics": flagged}
        for second in range(60, HOUR + 1, 60)
    ], "nvml")  # fmt: skip

    yield

    assert max(cluster.gpu_s().items(), key=lambda one: one[1])[0] == category


def test_blank_values_are_counted_by_metric(store: Any, tmp_path: Any) -> None:
    labels = 'gpu="0",UUID="GPU-11111111-2222-3333-4444-555555555555",Hostname="w1"'
    values = {"DCGM_FI_DEV_GPU_UTIL": 90, "DCGM_FI_PROF_PCIE_TX_BYTES": 9223372036854775792}
    lines = [
        f"{name}{{{labels}}} {value} {1795183200000 + 30_000 * n}\n"
        for n in range(61)
        for name, value in values.items()
    ]
    (tmp_path / "scrape.prom").write_text("".join(lines))
    ingest(store, "auto", [tmp_path], ReadOptions("lab"))
    store.build()

    kind = "select what, n from marts.data_quality where kind = 'blank values'"
    assert store.read(kind).rows() == [("pcie_tx_bytes_per_s blank in 61 of 61 readings", 61)]


UNPLACED = """select split_part(split_part(job_run_key, '/', -1), '@', 1) as job_id, reason, gpu_ms
    from marts.unplaced order by 1"""


@built_together
def test_shards_and_mps_of_the_accounting_are_parts_that_add_up_to_one_device(
    cluster: Any,
) -> None:
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
def test_shards_and_mps_that_the_queue_alone_lists_are_the_same_parts(cluster: Any) -> None:
    node = f"{cluster.name}-g"
    cluster.node(node, 4)
    cluster.load("nodes", [
        {"cluster": cluster.name, "node": node, "gres": "gpu:a40:4,shard:a40:16,mps:a40:400"}
    ])  # fmt: skip
    for job, kind, amount in (("1", "shard", 2), ("2", "mps", 50)):
        cluster.job(job, 0, HOUR, [node], None)
        cluster.load("gpu_parts", [
            {"cluster": cluster.name, "job_id_raw": job, "submit_at": cluster.at(0), "node": node,
             "kind": kind, "amount": amount}
        ], "slurm")  # fmt: skip
    cluster.watched(HOUR)

    yield

    assert cluster.read(UNPLACED).rows() == [
        ("1", "part_of_gpu", HOUR * 500),
        ("2", "part_of_gpu", HOUR * 500),
    ]


@pytest.mark.parametrize(
    ("others", "expected"),
    [([], {"1": 3 * HOUR}), (["2"], {})],
    ids=["alone on the node", "beside another job"],
)
@built_together
def test_gpus_that_a_node_lists_as_used_are_of_the_only_job_on_it(
    cluster: Any, others: list[str], expected: dict[str, int]
) -> None:
    node = f"{cluster.name}-g"
    cluster.node(node, 4)
    cluster.load("nodes", [
        {"cluster": cluster.name, "node": node, "gpus_used": 3, "used_indices": [0, 1, 3],
         "observed_at": cluster.at(1800)}
    ])  # fmt: skip
    for job in ("1", *others):
        cluster.job(job, 0, HOUR, [node], None)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == expected


@built_together
def test_shards_of_unknown_size_are_named_and_not_guessed(cluster: Any) -> None:
    cluster.node(f"{cluster.name}-g", 1)
    cluster.job("1", 0, HOUR, [f"{cluster.name}-g"], 0, alloc_tres="gres/shard=2")
    cluster.watched(HOUR)

    yield

    assert cluster.read(UNPLACED).rows() == []
    named = "select example from marts.data_quality where kind = 'jobs with shards of unknown size'"
    assert cluster.read(named).item() == f"{cluster.name}/1"


OFFERED = "select example from marts.data_quality where kind = 'more GPUs offered than there are'"


def offered(cluster: Any, devices: int, slots: int) -> str:
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
def test_a_node_without_labels_has_as_many_gpus_as_telemetry_lists(
    cluster: Any, devices: int, slots: int
) -> None:
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
def test_a_node_that_lost_a_gpu_of_its_telemetry_keeps_its_gpus(cluster: Any) -> None:
    node = offered(cluster, 7, 8)
    cluster.watched(HOUR)

    yield

    assert sum(cluster.gpu_s().values()) == 8 * HOUR
    named = cluster.read(OFFERED)["example"].to_list()
    assert f"{cluster.name}/{node} offers 8, 7 listed" in named
