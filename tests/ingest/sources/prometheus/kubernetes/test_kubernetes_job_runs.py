"""Pods into job runs: whose GPUs, from when to when, how it ended."""

from datetime import datetime, timedelta

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

START = datetime(2026, 8, 20, 13)  # noqa: DTZ001 -- naive UTC
JOBSET = {"label_jobset_sigs_k8s_io_jobset_name": "llm"}


def at(seconds):
    return None if seconds is None else START + timedelta(seconds=seconds)


@pytest.fixture
def load(store, tmp_path):
    """Read a cluster into the store."""

    def loaded(cluster):
        return ingest(store, "kubernetes", [cluster.save(tmp_path)], ReadOptions(cluster="k8s"))

    return loaded


@pytest.fixture
def runs(store, load):
    """Read a cluster and return its job runs."""

    def of(cluster, *columns):
        load(cluster)
        named = ", ".join(columns)
        return store.read(f"select {named} from raw.job_runs order by submit_at, job_id").rows()

    return of


# the pods of a job; what its one job run has
JOBS = {
    "two pods are one job run": (
        [{}, {"node": "gpu-a02", "bound_s": 25}],
        {"cluster": "k8s", "job_id": "nlp/train", "account": "nlp", "state": "RUNNING",
         "start_at": at(10), "end_at": None, "gpus": 16, "nodes": ["gpu-a01", "gpu-a02"]},
    ),
    "a succeeded pod holds nothing though its series go on": (
        [{"ended_s": 1_200, "phase": "Succeeded", "reason": "Completed"}],
        {"state": "COMPLETED", "end_at": at(1_200), "elapsed_s": 1_190},
    ),
    "a gang ends with its last pod": (
        [{"ended_s": 1_200, "phase": "Succeeded"},
         {"node": "gpu-a02", "ended_s": 1_260, "phase": "Succeeded"}],
        {"end_at": at(1_260), "gpus": 16},
    ),
    "a container that is done does not end its pod": (
        [{"ended_s": 600, "phase": "Running"}], {"state": "RUNNING", "end_at": None},
    ),
    "a pod whose series vanish ended when it was seen last": (
        [{"gone_s": 900}], {"state": "CANCELLED", "end_at": at(900.482)},
    ),
    "a pod that waits is demand": (
        [{"bound_s": None}],
        {"state": "PENDING", "start_at": None, "gpus": 0, "gpus_requested": 8,
         "eligible_at": at(0)},
    ),
    "a gang of which one pod waits holds what it has": (
        [{}, {"bound_s": None}],
        {"state": "RUNNING", "start_at": at(10), "gpus": 8, "gpus_requested": 16},
    ),
    "a MIG instance is asked for by its profile": (
        [{"gpus": 1, "resource": "nvidia_com_mig_1g_10gb"}],
        {"gpus": 1, "gpu_type": "1g.10gb", "alloc_tres": "nvidia_com_mig_1g_10gb=1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pods", "expected"), JOBS.values(), ids=JOBS)
def test_pods_of_a_job_are_its_job_run(cluster, runs, pods, expected):
    for number, pod in enumerate(pods):
        cluster.pod(f"train-{number}", **pod)

    assert runs(cluster, *expected) == [tuple(expected.values())]


def test_the_hold_begins_when_the_pod_is_bound_not_when_the_kubelet_saw_it(cluster, runs):
    """Pulling the image is time in which nobody else could have the GPUs."""
    cluster.pod("train-0", bound_s=10)
    own = {"namespace": "nlp", "pod": "train-0", "uid": "uid-nlp-train-0"}
    cluster.add("kube_pod_start_time", 1_787_230_800 + 95, **own)

    assert runs(cluster, "start_at") == [(at(10),)]


def test_without_a_scheduled_time_the_kubelets_word_counts(cluster, runs):
    cluster.pod("train-0", bound_s=10)
    cluster.series = [
        s for s in cluster.series if s["metric"]["__name__"] != "kube_pod_status_scheduled_time"
    ]
    own = {"namespace": "nlp", "pod": "train-0", "uid": "uid-nlp-train-0"}
    cluster.add("kube_pod_start_time", 1_787_230_800 + 95, **own)

    assert runs(cluster, "start_at") == [(at(95),)]


def test_a_pod_does_not_end_when_the_server_stops_watching(new_cluster, runs):
    cluster = new_cluster(until_s=900).node("gpu-a01").pod("train-0")

    assert runs(cluster, "state", "end_at") == [("RUNNING", None)]


def test_a_pod_that_was_gone_after_a_hole_in_the_watching_has_no_reported_end(new_cluster, runs):
    """For half an hour nobody looked: it may have run until the look before the next one."""
    cluster = new_cluster().pod("train-0", gone_s=900)
    own = {"node": "gpu-a01", "resource": "nvidia_com_gpu"}
    cluster.add("kube_node_status_capacity", 8, last_s=900, **own)
    cluster.add("kube_node_status_capacity", 8, first_s=2_700, **own)

    assert runs(cluster, "state", "end_at") == [("RUNNING", None)]


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("Error", "FAILED"),
        ("OOMKilled", "OUT_OF_MEMORY"),
        ("DeadlineExceeded", "TIMEOUT"),
        ("NodeLost", "NODE_FAIL"),
        ("UnexpectedAdmissionError", "NODE_FAIL"),
    ],
)
def test_why_a_pod_failed_is_a_reason_of_the_ledger(cluster, runs, reason, state):
    cluster.pod("train-0", ended_s=600, phase="Failed", reason=reason, exit_code=137)

    assert runs(cluster, "state", "exit_code") == [(state, "137")]


@pytest.mark.parametrize(
    ("metric", "reason", "state"),
    [
        ("kube_pod_status_disruption_reason", "PreemptionByScheduler", "PREEMPTED"),
        ("kube_pod_status_disruption_reason", "DeletionByTaintManager", "NODE_FAIL"),
        ("kube_pod_status_reason", "Evicted", "FAILED"),
        ("kube_pod_status_reason", "Shutdown", "NODE_FAIL"),
    ],
)
def test_a_disruption_is_no_failure_of_the_job(cluster, runs, metric, reason, state):
    cluster.pod("train-0", ended_s=600, phase="Failed", reason="Error")
    own = {"namespace": "nlp", "pod": "train-0", "uid": "uid-nlp-train-0"}
    cluster.add(metric, 0, reason="NodeAffinity", **own).add(metric, 1, reason=reason, **own)

    assert runs(cluster, "state", "reason")[0][0] == state


def test_the_job_itself_reports_how_it_ended_after_its_pods_have_gone(cluster, runs):
    cluster.pod("train-0", gone_s=900)
    cluster.add(
        "kube_job_failed", first_s=930, namespace="nlp", job_name="train", condition="true",
        reason="DeadlineExceeded",
    )  # fmt: skip

    assert runs(cluster, "state", "reason") == [("TIMEOUT", "DeadlineExceeded")]


def test_a_restart_of_a_job_is_another_job_run(cluster, runs):
    cluster.pod("train-a", ended_s=600, phase="Failed", reason="Error")
    cluster.pod("train-b", created_s=640, bound_s=650)

    assert runs(cluster, "job_id", "submit_at", "start_at", "end_at", "state") == [
        ("nlp/train", at(0), at(10), at(600), "FAILED"),
        ("nlp/train", at(640), at(650), None, "RUNNING"),
    ]


def test_a_restart_attempt_of_a_jobset_is_another_job_run_of_all_its_jobs(cluster, runs):
    attempt = "label_jobset_sigs_k8s_io_restart_attempt"
    for rank in (0, 1):
        node = f"gpu-a0{rank + 1}"
        cluster.pod(
            f"llm-w-{rank}-a", node, ended_s=600 + rank, phase="Failed",
            owner=("Job", f"llm-w-{rank}"), **JOBSET, **{attempt: "0"},
        )  # fmt: skip
        cluster.pod(
            f"llm-w-{rank}-b", node, created_s=600, bound_s=601 + rank,
            owner=("Job", f"llm-w-{rank}"), **JOBSET, **{attempt: "1"},
        )  # fmt: skip

    assert runs(cluster, "job_id", "job_name", "comment", "start_at", "end_at", "gpus") == [
        ("nlp/llm", "llm", "JobSet", at(10), at(601), 16),
        ("nlp/llm", "llm", "JobSet", at(601), None, 16),
    ]


def test_a_job_made_by_a_jobset_is_its_gang_where_pod_labels_are_not_allowed(cluster, runs):
    for rank in (0, 1):
        cluster.pod(f"llm-w-{rank}", f"gpu-a0{rank + 1}", owner=("Job", f"llm-w-{rank}"))
        cluster.add(
            "kube_job_owner", namespace="nlp", job_name=f"llm-w-{rank}", owner_kind="JobSet",
            owner_name="llm",
        )  # fmt: skip

    assert runs(cluster, "job_id", "gpus", "comment") == [("nlp/llm", 16, "JobSet")]


@pytest.mark.parametrize(
    "labels",
    [
        {"label_volcano_sh_job_name": "g", "label_volcano_sh_queue_name": "gold"},
        {"label_training_kubeflow_org_job_name": "g", "label_kueue_x_k8s_io_queue_name": "gold"},
        {"label_kueue_x_k8s_io_pod_group_name": "g", "label_kueue_x_k8s_io_queue_name": "gold"},
        {"label_leaderworkerset_sigs_k8s_io_name": "g", "label_volcano_sh_queue_name": "gold"},
    ],
)
def test_gangs_and_queues_are_known_by_their_labels(cluster, runs, labels):
    cluster.pod("a", owner=("Pod", "x"), **labels).pod("b", "gpu-a02", owner=("", ""), **labels)

    assert runs(cluster, "job_id", "gpus", "partition") == [("nlp/g", 16, "gold")]


def test_replicas_of_a_deployment_are_job_runs_of_their_own(cluster, runs):
    owner = ("ReplicaSet", "serve-7c9f")
    cluster.pod("serve-7c9f-a", gpus=1, owner=owner).pod("serve-7c9f-b", gpus=1, owner=owner)

    assert runs(cluster, "job_id", "gpus") == [("nlp/serve-7c9f-a", 1), ("nlp/serve-7c9f-b", 1)]


def test_pods_of_one_name_are_distinguished_by_their_uid(cluster, runs):
    owner = ("StatefulSet", "db")
    cluster.pod("db-0", uid="u1", gpus=1, gone_s=600, owner=owner)
    cluster.pod("db-0", uid="u2", gpus=1, created_s=630, bound_s=640, owner=owner)

    assert runs(cluster, "job_id", "start_at", "end_at") == [
        ("nlp/db-0", at(10), at(600.482)),
        ("nlp/db-0", at(640), None),
    ]


def test_containers_add_up_and_init_containers_do_not(cluster, runs):
    cluster.pod("train-0", gpus=2)
    own = {"namespace": "nlp", "pod": "train-0", "uid": "uid-nlp-train-0", "node": "gpu-a01"}
    gpu = {"resource": "nvidia_com_gpu", "unit": "integer"}
    cluster.add("kube_pod_container_resource_requests", 1, container="side", **own, **gpu)
    for name in ("warm", "check"):
        cluster.add("kube_pod_init_container_resource_requests", 3, container=name, **own, **gpu)

    assert runs(cluster, "gpus") == [(3,)]


def test_a_pod_without_gpus_is_nobodys_business(cluster, runs):
    cluster.pod("web-0", gpus=0).pod("db-0", resource="cpu", gpus=4)

    assert runs(cluster, "job_id") == []


def test_labels_that_prometheus_renamed_are_the_pods_own(cluster, runs):
    """Without honor_labels `pod` and `namespace` are those of kube-state-metrics itself."""
    cluster.pod("train-0")
    for series in cluster.series:
        metric = series["metric"]
        for name in ("namespace", "pod", "node", "uid"):
            if name in metric:
                metric[f"exported_{name}"] = metric[name]
                metric[name] = f"kube-state-metrics-{name}"

    assert runs(cluster, "job_id", "nodes") == [("nlp/train", ["gpu-a01"])]


def test_a_share_of_a_gpu_is_held_as_one_of_the_nodes_shares(cluster, store, load):
    cluster.node("gpu-s01", 4, label_nvidia_com_gpu_replicas="4", label_nvidia_com_gpu_count="1")
    cluster.pod("serve-0", "gpu-s01", gpus=1)

    load(cluster)

    assert store.read("select gpus, gpus_requested from raw.job_runs").rows() == [(1, 1)]
    assert store.read("select node, gpus from raw.holds").rows() == [("gpu-s01", 1)]
    nodes = store.read("select gpus, gres from raw.nodes where node = 'gpu-s01'").rows()
    assert nodes == [(1, "nvidia_com_gpu=4")]


def test_holds_are_numbers_per_node_where_nobody_names_the_gpus(cluster, store, load):
    cluster.pod("train-0", gpus=4).pod("train-1", gpus=2).pod("train-2", "gpu-a02", gpus=8)

    load(cluster)

    found = store.read("select node, gpus, gpu_uuid, method from raw.holds order by node").rows()
    assert found == [("gpu-a01", 6, None, "pod"), ("gpu-a02", 8, None, "pod")]


def util(cluster, uuid, pod, first_s=0, last_s=None, **labels):
    cluster.add(
        "DCGM_FI_DEV_GPU_UTIL", 90, first_s, last_s, UUID=uuid, Hostname="gpu-a01", gpu="0",
        exported_pod=pod, exported_namespace="nlp", pod="dcgm-exporter-x", namespace="gpu-operator",
        **labels,
    )  # fmt: skip


def test_holds_name_the_gpus_where_telemetry_carries_the_pod(cluster, store, load):
    cluster.pod("train-0", gpus=2)
    util(cluster, "GPU-1", "train-0")
    util(cluster, "GPU-2", "train-0")

    load(cluster)

    found = store.read("select node, gpu_uuid, gpu_instance, gpus from raw.holds order by all")
    assert found.rows() == [("gpu-a01", "GPU-1", "", None), ("gpu-a01", "GPU-2", "", None)]


def test_gpus_are_not_named_where_telemetry_carries_too_few_or_too_many(cluster, store, load):
    """Labels are missing now and then, and linger half an hour after a pod has gone."""
    cluster.pod("train-0", gpus=2)
    util(cluster, "GPU-1", "train-0")

    load(cluster)

    assert store.read("select gpu_uuid, gpus from raw.holds").rows() == [(None, 2)]


def test_a_label_that_lingers_names_no_gpu_of_the_next_pod(cluster, store, load):
    cluster.pod("train-0", gpus=1, ended_s=600, phase="Succeeded")
    util(cluster, "GPU-1", "train-0")
    util(cluster, "GPU-9", "train-0", first_s=900)

    load(cluster)

    assert store.read("select gpu_uuid from raw.holds").rows() == [("GPU-1",)]


def test_a_longer_recording_completes_the_same_job_run(new_cluster, store, load):
    def after(until_s):
        return new_cluster(until_s=until_s).node("gpu-a01")

    load(after(600).pod("train-0"))
    load(after(3_600).pod("train-0", ended_s=1_200, phase="Succeeded"))

    found = store.read("select state, start_at, end_at from raw.job_runs").rows()
    assert found == [("COMPLETED", at(10), at(1_200))]


def test_a_file_without_a_series_that_is_known_is_refused(new_cluster, load):
    with pytest.raises(IngestError, match="no series of kube-state-metrics that is known"):
        load(new_cluster().add("kube_service_info"))
