"""However one GPU is shared, the shares of its holders add up to one device: given, expected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.queries.conftest import built_together

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

HOUR = 3600
HELD = """select split_part(split_part(job_run_key, '/', -1), '@', 1) as owner,
    sum(gpu_ms) / 1000 as gpu_s
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
    return {name: float(gpu_s) for name, gpu_s in rows}


GIVEN_EXPECTED: dict[str, tuple[list[dict[str, Any]], dict[str, float]]] = {
    "a second pod comes": (
        [label("a", 0, HOUR), label("b", 1800, HOUR)],
        {"a": 2700, "b": 900},
    ),
    "a pod leaves and another comes later": (
        [label("a", 0, HOUR), label("b", 600, 1800), label("c", 3000, HOUR)],
        {"a": 600 + 600 + 1200 + 300, "b": 600, "c": 300},
    ),
}


@pytest.mark.parametrize("given", GIVEN_EXPECTED)
@built_together
def test_owners_by_labels_share_one_device(cluster: Any, given: str) -> None:
    labels, expected = GIVEN_EXPECTED[given]
    loaded(cluster, labels)

    yield

    assert held(cluster) == expected
    assert cluster.gpu_s() == {"busy_unclassified": HOUR}  # readings count for each share
    assert cluster.violations() == 0


def mig(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU of two 3g instances: one has a for an hour, the other b for the last half."""
    kind = "hpc_job" if by_accounting else "pod"
    names = [label("a", 0, HOUR, instance="1", kind=kind),
             label("b", 1800, HOUR, instance="2", kind=kind)]  # fmt: skip
    gpu = loaded(cluster, names if by_labels else [])
    cluster.load("gpu_instances", [
        {"cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": n, "profile": "3g.40gb",
         "compute_slices": 3, "slurm_index": int(n) - 1, "valid_from_at": cluster.at(0)}
        for n in ("1", "2")
    ], "dcgm")  # fmt: skip
    if by_accounting:
        cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 1, gpu_type="3g.40gb")
        cluster.job("b", 1800, HOUR, [f"{cluster.name}-a"], 1, gpu_type="3g.40gb")


def sliced(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU in four shares that Kubernetes offers, or that only labels know."""
    pods = [label("a", 0, HOUR), label("b", 0, 1800)]
    gpu = loaded(cluster, pods if by_labels else [])
    if not by_accounting:
        return
    cluster.load("gpu_instances", [
        {"cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": f"share.{n}/4",
         "profile": "shared 1/4", "compute_slices": 1, "slices_of": 4, "slurm_index": n}
        for n in range(4)
    ], "kubernetes")  # fmt: skip
    cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 1)
    cluster.job("b", 0, 1800, [f"{cluster.name}-a"], 2)


def virtual(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU that a middleware offers ten times, and that telemetry lists once."""
    pods = [label("a", 0, HOUR), label("b", 0, 1800)]
    loaded(cluster, pods if by_labels else [])
    if by_accounting:
        cluster.load("gpus", [
            {"cluster": cluster.name, "node": f"{cluster.name}-a", "slurm_index": slot,
             "gpu_uuid": f"{cluster.name}-a#{slot}", "valid_from_at": cluster.at(0)}
            for slot in range(10)
        ], "kubernetes")  # fmt: skip
        cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 5, gpu_type="shared")
        cluster.job("b", 0, 1800, [f"{cluster.name}-a"], 2, gpu_type="shared")


def containers(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU of a pod with two containers, whose series repeat for each."""
    names = [label("a", 0, HOUR, container=name) for name in "xy"]
    loaded(cluster, names if by_labels else [])
    if by_accounting:
        cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 1)


def shards(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU of four shards with two jobs of two."""
    names = [label(job, 0, HOUR, kind="hpc_job") for job in "ab"]
    loaded(cluster, names if by_labels else [])
    node = f"{cluster.name}-a"
    cluster.load("nodes", [{"cluster": cluster.name, "node": node, "gres": "gpu:1,shard:4"}])
    for job in "ab" if by_accounting else "":
        cluster.job(job, 0, HOUR, [node], 0, alloc_tres="gres/shard=2")


def mps(cluster: Any, *, by_labels: bool, by_accounting: bool) -> None:
    """Load a GPU of which MPS gives a job half and another a quarter; labels know no parts."""
    names = [label("a", 0, HOUR, kind="hpc_job"), label("b", 0, 1800, kind="hpc_job")]
    loaded(cluster, names if by_labels else [])
    if by_accounting:
        cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 0, alloc_tres="gres/mps=50")
        cluster.job("b", 0, 1800, [f"{cluster.name}-a"], 0, alloc_tres="gres/mps=25")


# a way to share one GPU; GPU-seconds of a and b by labels alone, by accounting, by both
SEVENTHS = ({"a": 3600 * 3 / 7, "b": 1800 * 3 / 7},) * 3
WAYS: dict[Any, tuple[dict[str, float], ...]] = {
    mig: SEVENTHS,
    sliced: ({"a": 2700, "b": 900}, {"a": 900, "b": 900}, {"a": 900, "b": 900}),
    virtual: ({"a": 2700, "b": 900}, {"a": 1800, "b": 360}, {"a": 1800, "b": 360}),
    containers: ({"a": 3600},) * 3,
    shards: ({"a": 1800, "b": 1800},) * 3,
    mps: ({"a": 2700, "b": 900}, {"a": 1800, "b": 450}, {"a": 1800, "b": 450}),
}
BY = {"labels": (True, False), "accounting": (False, True), "both": (True, True)}


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@built_together
def test_however_a_gpu_is_shared_its_parts_add_up_to_one(cluster: Any, way: Any, by: str) -> None:
    by_labels, by_accounting = BY[by]
    way(cluster, by_labels=by_labels, by_accounting=by_accounting)
    cluster.watched(HOUR)

    yield

    expected = WAYS[way][list(BY).index(by)]
    assert held(cluster) == pytest.approx(expected, abs=0.001)
    assert sum(cluster.gpu_s().values()) == HOUR
    assert cluster.violations() == 0


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


FOUR_GPUS = "gpu:a40:4(S:0-1),shard:a40:16(S:0-1),mps:a40:400(S:0-1)"
# what it shows: (job, TRES or GPUs, start, end) on FOUR_GPUS of 4 shards or 100 of MPS, GPU-seconds
SHARDS: dict[str, tuple[list[tuple[Any, ...]], dict[str, float]]] = {
    "two jobs fill a GPU": (
        [("1", "gres/shard=2", 0, HOUR), ("2", "cpu=4,gres/shard:a40=2", 0, HOUR)],
        {"1": 1800, "2": 1800},
    ),
    "beside whole GPUs": (
        [("1", "gres/shard=2", 0, HOUR), ("2", 3, 0, HOUR)], {"1": 1800, "2": 3 * HOUR},
    ),
    "a second job comes": (
        [("1", "gres/shard=1", 0, HOUR), ("2", "gres/shard=3", 1800, HOUR)],
        {"1": 900, "2": 1350},
    ),
    "more than one GPU has": (
        [(f"{n}", "gres/shard=3", 0, HOUR) for n in range(1, 5)],
        {f"{n}": 2700 for n in range(1, 5)},
    ),
    "half of MPS": ([("1", "gres/mps=50", 0, HOUR)], {"1": 1800}),
    "shards and MPS are on two GPUs": (
        [("1", "gres/shard=3", 0, HOUR), ("2", "gres/mps=25", 0, HOUR), ("3", 2, 0, HOUR)],
        {"1": 2700, "2": 900, "3": 2 * HOUR},
    ),
    "a GPU is whole again": (
        [("1", "gres/shard=2", 0, 1800), ("2", 4, 1800, HOUR)], {"1": 900, "2": 4 * 1800},
    ),
    "a job requeued": (
        [("1", "gres/shard=2", 0, 900), ("1", "gres/shard=2", 1800, HOUR)], {"1": 450 + 900},
    ),
    "one that still runs": ([("1", "gres/shard=1", 1800, None)], {"1": 450}),
}  # fmt: skip


@pytest.mark.parametrize("given", SHARDS)
@built_together
def test_parts_of_the_accounting_share_one_device(cluster: Any, given: str) -> None:
    jobs, expected = SHARDS[given]
    node = f"{cluster.name}-g"
    cluster.node(node, 4, model="a40")
    cluster.load("nodes", [{"cluster": cluster.name, "node": node, "gres": FOUR_GPUS}])
    for job, asked, start, end in jobs:
        tres, gpus = (asked, 0) if isinstance(asked, str) else (None, asked)
        state = "RUNNING" if end is None else "COMPLETED"
        cluster.job(job, start, end, [node], gpus, state, alloc_tres=tres)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == expected
    found = cluster.gpu_s()
    assert sum(found.values()) == 4 * HOUR
    free = sum(found.get(name, 0) for name in ("idle_no_demand", "idle_with_demand"))
    assert free == 4 * HOUR - sum(expected.values())
    assert cluster.read(UNPLACED).rows() == []
    assert cluster.violations() == 0


@built_together
def test_a_gpu_that_a_source_names_for_another_job_is_not_shared(cluster: Any) -> None:
    node = f"{cluster.name}-g"
    cluster.node(node, 4, model="a40")
    cluster.load("nodes", [{"cluster": cluster.name, "node": node, "gres": FOUR_GPUS}])
    cluster.job("1", 0, HOUR, [node], 0, alloc_tres="gres/shard=2")
    cluster.job("2", 0, HOUR, [node], 1)
    cluster.load("holds", [
        {"cluster": cluster.name, "job_id_raw": "2", "submit_at": cluster.at(0), "node": node,
         "slurm_index": 3, "method": "scontrol"}
    ])  # fmt: skip
    cluster.watched(HOUR)

    yield

    assert held(cluster) == {"1": 1800, "2": HOUR}
    assert cluster.violations() == 0


@built_together
def test_the_gpu_with_the_jobs_id_on_its_series_is_the_one_of_its_part(cluster: Any) -> None:
    gpu = loaded(cluster, [label("1", 0, HOUR, kind="hpc_job")])
    node = f"{cluster.name}-a"
    cluster.load("gpus", [
        {"cluster": cluster.name, "node": node, "gpu_uuid": f"{gpu}-1", "gpu_index": 1,
         "valid_from_at": cluster.at(0)}
    ], "dcgm")  # fmt: skip
    cluster.load("nodes", [{"cluster": cluster.name, "node": node, "gres": "gpu:2,shard:8"}])
    cluster.job("1", 0, HOUR, [node], 0, alloc_tres="gres/shard=2")

    yield

    assert held(cluster) == {"1": 1800}
    named = f"select distinct gpu_uuid from intermediate.int_holds where cluster = '{cluster.name}'"
    assert cluster.read(named).item() == gpu


@built_together
def test_parts_that_no_gpu_has_room_for_are_beside_the_ledger(cluster: Any) -> None:
    node = f"{cluster.name}-g"
    cluster.node(node, 1, model="a40")
    cluster.load("nodes", [
        {"cluster": cluster.name, "node": node, "gres": "gpu:a40:1,shard:a40:4"}
    ])  # fmt: skip
    for job, tres in {"1": "gres/shard=3", "2": "gres/shard=2"}.items():
        cluster.job(job, 0, HOUR, [node], 0, alloc_tres=tres)
    cluster.watched(HOUR)

    yield

    assert held(cluster) == {"1": 2700}
    assert cluster.read(UNPLACED).rows() == [("2", "part_of_gpu", HOUR * 500)]


@built_together
def test_labels_share_a_gpu_until_the_accounting_does(cluster: Any) -> None:
    """By labels and by accounting at once: from its first record on the scheduler decides."""
    gpu = loaded(cluster, [label(job, 0, HOUR, kind="hpc_job") for job in ("8", "9")])
    node = f"{cluster.name}-a"
    cluster.load("nodes", [{"cluster": cluster.name, "node": node, "gres": "gpu:1,shard:4"}])
    for job in ("1", "2"):
        cluster.job(job, 1800, HOUR, [node], 0, alloc_tres="gres/shard=2")
    cluster.load("gpu_owners", [
        {"cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": "", "kind": "hpc_job",
         "owner": job, "container": "", "first_seen_at": cluster.at(1800),
         "last_seen_at": cluster.at(HOUR)}
        for job in ("1", "2")
    ], "dcgm")  # fmt: skip

    yield

    assert held(cluster) == {"8": 900, "9": 900, "1": 900, "2": 900}
    assert cluster.gpu_s() == {"busy_unclassified": HOUR}
    assert cluster.violations() == 0


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

    assert held(cluster) == {"1": 1800, "2": 1800}


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
