"""Pods into job runs: whose GPUs, from when to when, how it ended."""

import pytest
from tests.ingest.sources.prometheus.kubernetes.conftest import START_S, Cluster, at, read_once

from goodput_queries.errors import IngestError

FAILED = {"ended_s": 600, "phase": "Failed", "exit_code": 137}
REPLICA, STATEFUL = ("ReplicaSet", "serve-7c9f"), ("StatefulSet", "db")
OTHER = {"node": "gpu-a02"}


def attempt(number, rank, **pod):
    """Return a pod of a JobSet, by the labels of the pod."""
    labels = {"jobset_name": "llm", "restart_attempt": f"{number}"}
    labels = {f"label_jobset_sigs_k8s_io_{name}": value for name, value in labels.items()}
    return {"node": f"gpu-a0{rank + 1}", "owner": ("Job", f"llm-w-{rank}"), **labels, **pod}


def gang(**labels):
    """Return two pods that their labels make one gang."""
    labels = {f"label_{name}": value for name, value in labels.items()}
    return [{"owner": ("Pod", "x"), **labels}, {**OTHER, "owner": ("", ""), **labels}]


# pods of a namespace of their own, and what its job runs have, in the order of their submits
CASES = {
    "two pods of a job are one job run": (
        [{}, {**OTHER, "bound_s": 25}],
        [{"cluster": "k8s", "job_id": "train", "state": "RUNNING", "start_at": at(10),
          "end_at": None, "gpus": 16, "nodes": ["gpu-a01", "gpu-a02"]}]),
    "a succeeded pod holds nothing though its series go on": (
        [{"ended_s": 1_200, "phase": "Succeeded", "reason": "Completed"}],
        [{"state": "COMPLETED", "end_at": at(1_200), "elapsed_s": 1_190}]),
    "a gang ends with its last pod": (
        [{"ended_s": 1_200, "phase": "Succeeded"},
         {**OTHER, "ended_s": 1_260, "phase": "Succeeded"}],
        [{"end_at": at(1_260), "gpus": 16}]),
    "a container that is done does not end its pod": (
        [{"ended_s": 600, "phase": "Running"}], [{"state": "RUNNING", "end_at": None}]),
    "a pod whose series vanish ended when it was seen last": (
        [{"gone_s": 900}], [{"state": "CANCELLED", "end_at": at(900.482)}]),
    "a pod that waits is demand": (
        [{"bound_s": None}],
        [{"state": "PENDING", "start_at": None, "gpus": 0, "gpus_requested": 8,
          "eligible_at": at(0)}]),
    "a gang of which one pod waits holds what it has": (
        [{}, {"bound_s": None}],
        [{"state": "RUNNING", "start_at": at(10), "gpus": 8, "gpus_requested": 16}]),
    "a MIG instance is asked for by its profile": (
        [{"gpus": 1, "resource": "nvidia_com_mig_1g_10gb"}],
        [{"gpus": 1, "gpu_type": "1g.10gb", "alloc_tres": "nvidia_com_mig_1g_10gb=1"}]),
    "a part of a MIG instance is asked for by the profile": (
        [{"gpus": 1, "resource": "nvidia_com_mig_1g_10gb_me_shared"}],
        [{"gpus": 1, "gpu_type": "1g.10gb+me"}]),
    **{
        f"a pod that failed with {reason} is {state}": (
            [{**FAILED, "reason": reason}], [{"state": state, "exit_code": "137"}])
        for reason, state in {
            "Error": "FAILED", "OOMKilled": "OUT_OF_MEMORY", "DeadlineExceeded": "TIMEOUT",
            "NodeLost": "NODE_FAIL", "UnexpectedAdmissionError": "NODE_FAIL",
        }.items()},
    "a restart of a job is another job run": (
        [{"ended_s": 600, "phase": "Failed", "reason": "Error"},
         {"created_s": 640, "bound_s": 650}],
        [{"job_id": "train", "submit_at": at(0), "end_at": at(600), "state": "FAILED"},
         {"job_id": "train", "submit_at": at(640), "end_at": None, "state": "RUNNING"}]),
    "a restart attempt of a JobSet is another job run of all its jobs": (
        [pod for rank in (0, 1) for pod in (
            attempt(0, rank, ended_s=600 + rank, phase="Failed"),
            attempt(1, rank, created_s=600, bound_s=601 + rank))],
        [{"job_id": "llm", "comment": "JobSet", "start_at": at(10), "end_at": at(601), "gpus": 16},
         {"job_id": "llm", "comment": "JobSet", "start_at": at(601), "end_at": None, "gpus": 16}]),
    **{
        f"pods with the label {label} are a gang, with {queue} its queue": (
            gang(**{label: "g", queue: "gold"}), [{"job_id": "g", "gpus": 16, "partition": "gold"}])
        for label, queue in {
            "volcano_sh_job_name": "volcano_sh_queue_name",
            "training_kubeflow_org_job_name": "kueue_x_k8s_io_queue_name",
            "kueue_x_k8s_io_pod_group_name": "kueue_x_k8s_io_queue_name",
            "leaderworkerset_sigs_k8s_io_name": "volcano_sh_queue_name",
        }.items()},
    "replicas of a deployment are job runs of their own": (
        [{"gpus": 1, "owner": REPLICA}, {"gpus": 1, "owner": REPLICA}],
        [{"job_id": "train-0", "gpus": 1}, {"job_id": "train-1", "gpus": 1}]),
    "pods of one name are distinguished by their uid": (
        [{"name": "db-0", "uid": "u1", "gpus": 1, "gone_s": 600, "owner": STATEFUL},
         {"name": "db-0", "uid": "u2", "created_s": 630, "bound_s": 640, "owner": STATEFUL}],
        [{"job_id": "db-0", "start_at": at(10), "end_at": at(600.482)},
         {"job_id": "db-0", "start_at": at(640), "end_at": None}]),
    "a pod without GPUs is no job run": ([{"gpus": 0}, {"resource": "cpu", "gpus": 4}], []),
}  # fmt: skip


def own(namespace, name="train-0"):
    """Return the labels of a pod's series."""
    return {"namespace": namespace, "pod": name, "uid": f"uid-{namespace}-{name}"}


def kubelet(cluster, namespace):
    """Let the kubelet see the pod later: pulling its image is time of nobody else."""
    cluster.add("kube_pod_start_time", START_S + 95, **own(namespace))


def kubelet_alone(cluster, namespace):
    kubelet(cluster, namespace)
    cluster.series = [
        one
        for one in cluster.series
        if one["metric"].get("namespace") != namespace
        or one["metric"]["__name__"] != "kube_pod_status_scheduled_time"
    ]


def disruption(metric, reason):
    def add(cluster, namespace):
        cluster.add(metric, 0, reason="NodeAffinity", **own(namespace))
        cluster.add(metric, 1, reason=reason, **own(namespace))

    return add


def of_job(metric, first_s=0, **labels):
    """Return what adds a series of the job `train`."""
    return lambda cluster, namespace: cluster.add(
        metric, first_s=first_s, namespace=namespace, job_name="train", **labels
    )


def containers(cluster, namespace):
    gpu = {"resource": "nvidia_com_gpu", "unit": "integer", "node": "gpu-a01", **own(namespace)}
    cluster.add("kube_pod_container_resource_requests", 1, container="side", **gpu)
    for name in ("warm", "check"):
        cluster.add("kube_pod_init_container_resource_requests", 3, container=name, **gpu)


def renamed(cluster, namespace):
    """Without honor_labels `pod` and `namespace` are those of kube-state-metrics itself."""
    for series in cluster.series:
        metric = series["metric"]
        if metric.get("namespace") == namespace:
            for name in ("namespace", "pod", "node", "uid"):
                if name in metric:
                    metric[f"exported_{name}"] = metric[name]
                    metric[name] = f"kube-state-metrics-{name}"


# a pod, what else there is about it, and what its job run has
MORE = {
    "a hold begins when the pod is bound": ({}, kubelet, {"start_at": at(10)}),
    "without a scheduled time the kubelet's counts": ({}, kubelet_alone, {"start_at": at(95)}),
    **{
        f"a pod disrupted by {reason} is {state}": (
            {"ended_s": 600, "phase": "Failed", "reason": "Error"},
            disruption(f"kube_pod_status_{metric}", reason), {"state": state})
        for metric, reason, state in (
            ("disruption_reason", "PreemptionByScheduler", "PREEMPTED"),
            ("disruption_reason", "DeletionByTaintManager", "NODE_FAIL"),
            ("reason", "Evicted", "FAILED"), ("reason", "Shutdown", "NODE_FAIL"))},
    "a job reports how it ended after its pods have gone": (
        {"gone_s": 900},
        of_job("kube_job_failed", 930, condition="true", reason="DeadlineExceeded"),
        {"state": "TIMEOUT", "reason": "DeadlineExceeded"}),
    "a job made by a JobSet is its gang where pod labels are not allowed": (
        {}, of_job("kube_job_owner", owner_kind="JobSet", owner_name="llm"),
        {"job_id": "llm", "comment": "JobSet"}),
    "containers add up and init containers do not": ({"gpus": 2}, containers, {"gpus": 3}),
    "labels that Prometheus renamed are the pod's own": (
        {}, renamed, {"job_id": "train", "nodes": ["gpu-a01"]}),
}  # fmt: skip
NAMESPACES = {name: f"ns{number}" for number, name in enumerate((*CASES, *MORE))}


@read_once
def all_cases(cluster):
    """Load the pods of all cases, a namespace each."""
    cluster.node("gpu-a01").node("gpu-a02")
    pods = {name: pods for name, (pods, _) in CASES.items()}
    pods |= {name: [pod] for name, (pod, _, _) in MORE.items()}
    for name, of_case in pods.items():
        for number, pod in enumerate(of_case):
            cluster.pod(**{"name": f"train-{number}", "namespace": NAMESPACES[name], **pod})
    for name, (_, add, _) in MORE.items():
        add(cluster, NAMESPACES[name])


@pytest.mark.parametrize("name", NAMESPACES)
def test_pods_of_a_namespace_are_these_job_runs(all_cases, name):
    expected = CASES[name][1] if name in CASES else [MORE[name][2]]

    rows = all_cases.read(
        """select * replace (split_part(job_id, '/', 2) as job_id) from raw.job_runs
        where account = $1 and starts_with(job_id, $1) order by submit_at, job_id""",
        [NAMESPACES[name]],
    )

    found = rows.select(*expected[0]).rows(named=True) if expected else rows.rows()
    assert found == expected


def test_a_pod_that_was_gone_after_a_hole_in_the_watching_has_no_reported_end(store, load):
    """For half an hour nobody looked: it may have run until the look before the next one."""
    cluster = Cluster().pod("train-0", gone_s=900)
    watched = {"node": "gpu-a01", "resource": "nvidia_com_gpu"}
    cluster.add("kube_node_status_capacity", 8, last_s=900, **watched)
    cluster.add("kube_node_status_capacity", 8, first_s=2_700, **watched)
    load(cluster)

    assert store.read("select state, end_at from raw.job_runs").rows() == [("RUNNING", None)]


def test_a_pod_does_not_end_with_the_recording_and_a_longer_one_completes_it(store, load):
    found = "select state, start_at, end_at from raw.job_runs"
    load(Cluster(until_s=600).node("gpu-a01").pod("train-0"))
    assert store.read(found).rows() == [("RUNNING", at(10), None)]

    load(Cluster().node("gpu-a01").pod("train-0", ended_s=1_200, phase="Succeeded"))
    assert store.read(found).rows() == [("COMPLETED", at(10), at(1_200))]


def test_a_file_without_a_series_that_is_known_is_refused(load):
    with pytest.raises(IngestError, match="no series of kube-state-metrics that is known"):
        load(Cluster().add("kube_service_info"))
