"""However one GPU is shared, the shares of its holders add up to one device: given, expected."""

import pytest
from tests.queries.conftest import each, shown_by
from tests.queries.loaders import at

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.ledger import ledger

HOUR = 3600


def label(owner, start, end, *, kind="pod", container="", instance=""):
    """Return what a label on the series of the GPU says."""
    return {"owner": owner, "first_seen_at": start, "last_seen_at": end, "kind": kind,
            "container": container, "gpu_instance": instance}  # fmt: skip


def loaded(cluster, labels, *, until=HOUR):
    """Load one GPU that is read to the end, with its owners by labels; return its UUID."""
    gpu = f"GPU-{cluster.name}"
    of_gpu = {"source": "dcgm", "gpu_uuid": gpu}
    cluster.add("gpus", node=f"{cluster.name}-a", gpu_index=0, valid_from_at=0, **of_gpu)
    read = [
        {"gpu_instance": instance, "ts": second}
        for instance in sorted({one["gpu_instance"] for one in labels}) or [""]
        for second in range(0, until + 1, 60)
    ]
    cluster.add("gpu_samples", *read, gpu_busy_ratio=0.7, is_flagged=False, **of_gpu)
    if labels:
        cluster.add("gpu_owners", *labels, **of_gpu)
    return gpu


def slots(cluster, node, count):
    """Load as many GPUs as Kubernetes offers on a node."""
    offered_there = [{"gpu_uuid": f"{node}#{n}", "slurm_index": n} for n in range(count)]
    cluster.add("gpus", *offered_there, source="kubernetes", node=node, valid_from_at=0)


def held(cluster):
    """Return the GPU-seconds of each owner."""
    owner = "split_part(split_part(job_run_key, '/', -1), '@', 1), (sum(gpu_ms) / 1000)::double"
    return dict(cluster.own(owner, "marts.ledger_pieces", "job_run_key is not null group by 1"))


def halves(cluster, gpu):
    """Cut a GPU into two 3g instances."""
    parts = [{"gpu_instance": str(n + 1), "slurm_index": n} for n in range(2)]
    cluster.add("gpu_instances", *parts, source="dcgm", gpu_uuid=gpu, profile="3g.40gb",
                compute_slices=3, valid_from_at=0)  # fmt: skip


def jobs(cluster, a, b, b_start=0, b_end=1800, **more):
    """Add a for an hour and b for half of it, with so many GPUs; return the node."""
    node = f"{cluster.name}-a"
    cluster.job("a", 0, HOUR, [node], a, **more)
    cluster.job("b", b_start, b_end, [node], b, **more)
    return node


def mig(cluster, *, by_labels, by_accounting):
    """Load a GPU of two 3g instances: one has a for an hour, the other b for the last half."""
    kind = "hpc_job" if by_accounting else "pod"
    names = [label("a", 0, HOUR, instance="1", kind=kind),
             label("b", 1800, HOUR, instance="2", kind=kind)]  # fmt: skip
    halves(cluster, loaded(cluster, names if by_labels else []))
    if by_accounting:
        jobs(cluster, 1, 1, 1800, HOUR, gpu_type="3g.40gb")


def sliced(cluster, *, by_labels, by_accounting):
    """Load a GPU in four shares that Kubernetes offers, or that only labels know."""
    gpu = loaded(cluster, PODS if by_labels else [])
    if by_accounting:
        parts = [{"gpu_instance": f"share.{n}/4", "slurm_index": n} for n in range(4)]
        cluster.add("gpu_instances", *parts, source="kubernetes", gpu_uuid=gpu,
                    profile="shared 1/4", compute_slices=1, slices_of=4)  # fmt: skip
        jobs(cluster, 1, 2)


def sliced_instance(cluster, *, by_labels, by_accounting):
    """Load a MIG GPU of two 3g instances, each offered twice; a and b share the first."""
    gpu = loaded(cluster, [{**pod, "gpu_instance": "1"} for pod in PODS] if by_labels else [])
    halves(cluster, gpu)
    if by_accounting:
        node = jobs(cluster, 1, 1, gpu_type="3g.40gb")
        cluster.add("nodes", source="kubernetes", node=node, gres="nvidia_com_mig_3g_40gb=4")
        for job in "ab" if by_labels else "":
            cluster.hold(job, source="kubernetes", node=node, gpu_uuid=gpu, gpu_instance="1",
                         method="pod")  # fmt: skip


def virtual(cluster, *, by_labels, by_accounting):
    """Load a GPU that a middleware offers ten times, and that telemetry lists once."""
    loaded(cluster, PODS if by_labels else [])
    if by_accounting:
        slots(cluster, jobs(cluster, 5, 2, gpu_type="shared"), 10)


def containers(cluster, *, by_labels, by_accounting):
    """Load a GPU of a pod with two containers, whose series repeat for each."""
    loaded(cluster, [{**PODS[0], "container": name} for name in "xy"] if by_labels else [])
    if by_accounting:
        cluster.job("a", 0, HOUR, [f"{cluster.name}-a"], 1)


def hami(cluster, *, by_labels, by_accounting):
    """Load a GPU of which HAMi lets pods have half and a quarter of the cores."""
    loaded(cluster, PODS if by_labels else [])
    if by_accounting:
        parts = [{"job_id_raw": job, "amount": percent} for job, percent in (("a", 50), ("b", 25))]
        cluster.add("gpu_parts", *parts, source="kubernetes", submit_at=0, kind="mps",
                    node=jobs(cluster, 0, 0))  # fmt: skip


def time_sliced(cluster, *, by_labels, by_accounting):
    """Load a GPU of two pods that ask for a GPU each; only their labels show that it is one."""
    loaded(cluster, PODS if by_labels else [])
    if by_accounting:
        jobs(cluster, 1, 1, source="kubernetes")


PODS = [label("a", 0, HOUR), label("b", 0, 1800)]
# a way to share one GPU; GPU-seconds of a and b by labels alone, by accounting, by both
BY = {"labels": (True, False), "accounting": (False, True), "both": (True, True)}
BY_LABELS = {"a": 2700, "b": 900}
WAYS = {
    mig: [{"a": 3600 * 3 / 7, "b": 1800 * 3 / 7}] * 3,
    sliced: [BY_LABELS, *[{"a": 900, "b": 900}] * 2],
    sliced_instance: [{"a": 2700 * 3 / 7, "b": 900 * 3 / 7},
                      *[{"a": 3600 * 1.5 / 7, "b": 1800 * 1.5 / 7}] * 2],
    virtual: [BY_LABELS, *[{"a": 1800, "b": 360}] * 2],
    containers: [{"a": 3600}] * 3,
    time_sliced: [BY_LABELS, {"a": 1800, "b": 1800}, BY_LABELS],
    hami: [BY_LABELS, *[{"a": 1800, "b": 450}] * 2],
}  # fmt: skip


@pytest.mark.parametrize(("place", "by"), [*enumerate(BY.values())], ids=BY)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_however_a_gpu_is_shared_its_parts_add_up_to_one(cluster, way, place, by):
    way(cluster, by_labels=by[0], by_accounting=by[1])
    cluster.watched(HOUR)

    yield

    assert held(cluster) == pytest.approx(WAYS[way][place], abs=0.001)
    assert sum(cluster.gpu_s().values()) == HOUR


def pod(cluster, gpu, name, start, end, source="kubernetes", **more):
    """Load a pod of which Kubernetes names the GPU."""
    node = f"{cluster.name}-a"
    cluster.job(name, start, end, [node], 1, source=source, **more)
    cluster.hold(name, None, start, source=source, node=node, gpu_uuid=gpu, gpu_instance="")


def test_pods_of_which_kubernetes_names_one_gpu_share_it_however_late_they_come(cluster):
    gpu = loaded(cluster, [])
    cluster.watched(HOUR)
    pod(cluster, gpu, "a", 0, HOUR)
    yield
    assert held(cluster) == {"a": HOUR}
    pod(cluster, gpu, "b", 900, 1800)
    yield
    assert held(cluster) == {"a": HOUR - 450, "b": 450}


def test_a_pod_that_is_no_longer_listed_shares_nothing_with_the_next_one(cluster):
    gpu = loaded(cluster, [])
    cluster.watched(3 * HOUR)
    for name, start, seen in (("a", 0, HOUR), ("b", HOUR + 600, 3 * HOUR)):
        pod(cluster, gpu, name, start, None, "kubernetes-api", observed_at=at(seen))
    yield
    assert held(cluster) == {"a": HOUR, "b": 2 * HOUR - 600}


OFFERED = "select example from marts.data_quality where kind = 'more GPUs offered than there are'"


def offered(cluster, devices, count):
    """Load a node that offers so many GPUs and of which telemetry lists so many; return it."""
    node = f"{cluster.name}-n"
    slots(cluster, node, count)
    gpus = [{"gpu_uuid": f"GPU-{cluster.name}-{n}", "gpu_index": n} for n in range(devices)]
    cluster.add("gpus", *gpus, source="dcgm", node=node, valid_from_at=0)
    return node


@pytest.mark.parametrize(("devices", "count"), [(1, 12), (2, 8)])
def test_a_node_without_labels_has_as_many_gpus_as_telemetry_lists(cluster, devices, count):
    node = offered(cluster, devices, count)
    cluster.job("a", 0, HOUR, [node], 1)
    cluster.job("b", 0, HOUR, [node], count // 2)
    cluster.watched(HOUR)

    yield

    assert sum(cluster.gpu_s().values()) == devices * HOUR
    assert held(cluster) == {"a": HOUR * devices / count, "b": devices * HOUR / 2}
    assert cluster.own("node, replicas", "staging.stg_time_sliced") == [(node, count // devices)]


test_a_node_that_lost_a_gpu_of_its_telemetry = shown_by({"keeps its GPUs": (
    lambda c: [offered(c, 7, 8), c.watched(HOUR)],
    lambda c: (sum(c.gpu_s().values()), f"{c.name}/{c.name}-n offers 8, 7 listed" in
               c.read(OFFERED)["example"].to_list()), (8 * HOUR, True))})  # fmt: skip


# an earlier version does not say what is flagged
@each(("power_w", "busy_unclassified"), ("gpm", "unknown"), (None, "unknown"))
def test_a_flag_of_nvml_voids_the_reading_of_incomplete_shares(cluster, flagged, category):
    gpu = loaded(cluster, [label("a", 0, HOUR)], until=0)
    more = {"is_flagged": True, "flagged_metrics": flagged}
    cluster.readings(gpu, range(60, HOUR + 1, 60), "nvml", gpu_busy_ratio=0.9, **more)
    yield
    assert max(cluster.gpu_s().items(), key=lambda one: one[1])[0] == category


BLANK = "140737488355328.0"
NAMES = {"busy": "DCGM_FI_DEV_GPU_UTIL", "engine": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
         "sm": "DCGM_FI_PROF_SM_ACTIVE", "tensor": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
         "dram": "DCGM_FI_PROF_DRAM_ACTIVE", "pcie": "DCGM_FI_PROF_PCIE_TX_BYTES",
         "power": "DCGM_FI_DEV_POWER_USAGE", "clock": "DCGM_FI_DEV_SM_CLOCK"}  # fmt: skip
NO_ACTIVITY = {"engine": 0, "tensor": 0, "dram": 0}
# what it shows: what each scrape has of a GPU that no job holds, and its category
SCRAPES = {
    "a share is missing, utilisation counts": (
        {"busy": 90, "sm": BLANK, **NO_ACTIVITY}, "busy_unclassified"),
    "the same where the first share is missing": (
        {"busy": 90, "sm": 0, **NO_ACTIVITY, "engine": BLANK}, "busy_unclassified"),
    "utilisation of 0 beside a missing share": (
        {"busy": 0, "sm": BLANK, **NO_ACTIVITY}, "idle_no_demand"),
    "shares show activity beside a missing one": (
        {"busy": 0, "sm": BLANK, "engine": 0.5}, "busy_unclassified"),
    "shares that show none beside a missing one prove nothing": (
        {"sm": BLANK, **NO_ACTIVITY}, "free_unknown"),
    "no share but utilisation": ({"busy": 90, "sm": BLANK, "engine": BLANK}, "busy_unclassified"),
    "no utilisation but a share": ({"busy": BLANK, "sm": 0.4}, "busy_unclassified"),
    "nothing": ({"busy": BLANK, "sm": BLANK}, "free_unknown"),
    "a share that the exporter does not have": ({"busy": 90, **NO_ACTIVITY}, "idle_no_demand"),
    **{f"{name}: {value}": ({"busy": 90, name: value}, "busy_unclassified")
       for name in ("pcie", "power", "clock", "dram")
       for value in ("9223372036854775792", "2147483632", "NaN", "+Inf", "-1", "1e30")},
}  # fmt: skip


@pytest.fixture(scope="module")
def scraped(module_store, tmp_path_factory):
    """Give the category of the GPU of each scrape, by what the scrape shows."""
    lines = [f'{NAMES[name]}{{gpu="0",UUID="GPU-{number:08}",Hostname="w{number}"}} {value} {ms}\n'
             for ms in range(1795183200000, 1795183800001, 30_000)
             for number, (values, _) in enumerate(SCRAPES.values())
             for name, value in values.items()]  # fmt: skip
    path = tmp_path_factory.mktemp("scrapes") / "scrape.prom"
    path.write_text("".join(lines))
    store = module_store()
    ingest(store, "auto", [path], ReadOptions("lab"))
    store.build()
    found = dict(ledger(store, by=["gpu", "category"]).select("gpu", "category").rows())
    assert len(found) == len(SCRAPES)
    return store, {case: found[f"GPU-{number:08}"] for number, case in enumerate(SCRAPES)}


@pytest.mark.parametrize("case", SCRAPES)
def test_a_value_that_is_not_there_voids_itself_alone(scraped, case):
    assert scraped[1][case] == SCRAPES[case][1]


def test_blank_values_are_counted_by_metric(scraped):
    sql = "select what, n from marts.data_quality where kind = 'blank values' order by what"
    ((what, n),) = scraped[0].read(sql).rows()
    assert "; pcie_tx_bytes_per_s blank in 126 of 126 readings; power_w blank in 126 of" in what
    assert n == 5 * 126 + 2 * 42
