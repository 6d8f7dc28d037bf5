"""Objects of the Kubernetes API: what pages and commands show of them."""

import json
from types import SimpleNamespace

import pytest
from tests.ingest.golden_cases import golden_path
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.scope import Scope


def queued(reserved=None, admitted=None, evicted=None):
    """Return a Workload of the job nlp/llm made at minute 0; minutes of what became of it."""
    marks = {"QuotaReserved": reserved, "Admitted": admitted, "Evicted": evicted}
    conditions = [
        {"type": name, "status": "True", "reason": name, "lastTransitionTime": at(minute)}
        for name, minute in marks.items()
        if minute is not None
    ]
    if reserved is None:
        why = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
        conditions.append({"type": "QuotaReserved", "status": "False", "reason": "Pending",
                           "message": why, "lastTransitionTime": at(evicted or 0)})  # fmt: skip
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "job-llm", "namespace": "nlp", "uid": "w", "creationTimestamp": at(0),
                     "ownerReferences": [{"kind": "Job", "name": "llm", "controller": True}]},
        "spec": {"queueName": "gold", "podSets": [{"name": "main", "count": 2, "template": {
            "spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 8}}}]}}}]},
        "status": {"conditions": conditions},
    }  # fmt: skip


def pod(name="llm-0", created=10, started=None):
    """Return a pod of the job nlp/llm with 8 GPUs."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(started or 0)}
    requests = {"requests": {"nvidia.com/gpu": 8}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "nlp", "uid": name,
                     "creationTimestamp": at(created),
                     "ownerReferences": [{"kind": "Job", "name": "llm", "controller": True}]},
        "spec": {"nodeName": "n1" if started else "", "containers": [{"resources": requests}]},
        "status": {"phase": "Running" if started else "Pending",
                   "conditions": [scheduled] if started else []},
    }  # fmt: skip


def at(minute):
    """Return a moment of 2026-08-20 after 12:00."""
    return f"2026-08-20T12:{minute:02d}:00Z"


def other_job(minute):
    """Return a Job, after whose end nothing else is known: until then all was watched."""
    done = {"type": "Complete", "status": "True", "lastTransitionTime": at(minute)}
    of = {"name": "other", "namespace": "cv", "creationTimestamp": at(0)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": of,
            "status": {"conditions": [done]}}  # fmt: skip


def claimed(*pods):
    """Return a ResourceClaim that pods use, and the slice with its GPU."""
    device = {"name": "gpu-0", "basic": {"attributes": {"uuid": {"string": "GPU-0"}}}}
    users = [{"resource": "pods", "name": name, "uid": name} for name in pods]
    result = {"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    of = {"creationTimestamp": at(0), "namespace": "nlp", "name": "c", "uid": "c"}
    return [
        {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": of, "spec": {
            "driver": "gpu.nvidia.com", "pool": {"name": "n1"}, "nodeName": "n1",
            "devices": [device]}},
        {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "metadata": of,
         "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}},
    ]  # fmt: skip


def user_of_claim(name, job, started, ended=None):
    """Return a pod of a job whose GPU is that of its claim."""
    found = pod(name, created=0, started=started)
    found["metadata"]["ownerReferences"][0]["name"] = job
    found["spec"] = {"nodeName": "n1", "containers": [{}], "resourceClaims": [{"name": "gpu"}]}
    if ended:
        state = {"terminated": {"exitCode": 0, "finishedAt": at(ended)}}
        found["status"] |= {"phase": "Succeeded", "containerStatuses": [{"state": state}]}
    return found


def train_job(minute, percent, left_s, **metrics):
    """Return a TrainJob of the pods of nlp/llm with the status of a minute."""
    named = [{"name": name, "value": f"{value}"} for name, value in metrics.items()]
    status = {"progressPercentage": percent, "estimatedRemainingSeconds": left_s,
              "metrics": named, "lastUpdatedTime": at(minute)}  # fmt: skip
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "llm", "namespace": "nlp", "uid": "t", "creationTimestamp": at(0)},
            "status": {"trainerStatus": status}}  # fmt: skip


def golden(case):
    return (golden_path("kubernetes") / case / "input.json").read_text()


SHARES = """select regexp_extract(job_run_key, '/([\\w-]+)@', 1), gpu_uuid,
        any_value((share_hi - share_lo) / share_of)
    from intermediate.int_holds as holds
    inner join intermediate.int_gpu_units using (gpu_uuid, gpu_instance)
    where holds.cluster = $1 and gpu_uuid like 'GPU-%' group by 1, 2 order by 1"""
HELD = """select job_id, replace(gpu_uuid, '-' || $1, ''), share_hi - share_lo, share_of,
        (holds.end_ms - holds.start_ms) // 60000
    from intermediate.int_holds as holds
    inner join intermediate.int_job_runs as runs using (job_run_key)
    inner join intermediate.int_gpu_units as units using (gpu_uuid, gpu_instance)
    where runs.cluster = $1 group by all order by all"""
PROGRESS = "select progress_ratio, expected_end_at::varchar, done_steps from marts.run_forecasts"
LEDGER = """select category, sum(gpu_ms) / 8 // 60000 from marts.ledger_pieces
    where starts_with(job_run_key, $1 || '/') group by 1 order by 1"""
WAITS = """select job_name, queue, gpus, is_started, wait_s, reason, evictions from marts.job_waits
    order by since_at"""
QUOTAS = """select kind, queue, flavor, quota_gpus, limit_gpus, reserved_gpus, used_gpus,
        waiting_jobs, waiting_gpus
    from marts.queue_quotas order by all"""
QUOTA = "WaitingForQuota"
# what it shows: what is asked, what was listed, one after the other, and what is shown at the end
CASES = {
    "gpus of claims are held by name and share": (
        SHARES, [golden("pods_with_claims_and_shares")],
        [("half", "GPU-1", 0.5), ("llm", "GPU-0", 1), ("one-of-two", "GPU-2", 0.5),
         ("quarter", "GPU-1", 0.25), ("two-of-two", "GPU-2", 0.5)]),
    "a pod that has ended without its claim held the GPU until its end": (
        HELD, [[user_of_claim("a", "a", 1), *claimed("a")], [user_of_claim("a", "a", 1, 21)]],
        [("nlp/a", "GPU-0", 1, 1, 20)]),
    "pods of two jobs have equal parts of a claim": (
        HELD,
        [[user_of_claim("a", "a", 1, 21), user_of_claim("b", "b", 1, 31), *claimed("a", "b")]],
        [("nlp/a", "GPU-0", 50, 100, 20), ("nlp/b", "GPU-0", 50, 100, 30)]),
    "pods of one job have the whole GPU of a claim": (
        HELD, [[*(user_of_claim(name, "a", 1, 21) for name in "ab"), *claimed("a", "b")]],
        [("nlp/a", "GPU-0", 100, 100, 20)]),
    "pods have equal parts of a GPU, or the MIG instances, that HAMi gave them": (
        HELD, [golden("pods_with_gpus_by_hami")],
        [("ml/a", "GPU-g0", 1, 1, 30), ("ml/a", "GPU-g0", 1, 2, 30), ("ml/b", "GPU-g0", 1, 2, 30),
         ("ml/cut", "GPU-e0", 3, 7, 60), ("ml/cut-before", "GPU-f0", 42, 100, 60)]),
    "a failed job that no trainer reports is no loss": (
        LEDGER, [golden("failed_pytorch_job_without_progress")], [("unknown", 25)]),
    "a run shows the progress that its trainer reports": (
        PROGRESS,
        [[pod(created=0, started=1), train_job(10, 20, 1800)],
         [train_job(30, 45, 1200), other_job(40)]],
        [(0.45, "2026-08-20 12:50:00", None)]),
    # 15 minutes for the first hundred, of which what is over the next ones' time is start-up
    "steps of a train job took as long as the time left says": (
        LEDGER,
        [[pod(created=0, started=1)], [train_job(20, 10, 8100, currentStep=100, totalSteps=1000)],
         [train_job(30, 20, 5400, currentStep=200, totalSteps=1000), other_job(40)]],
        [("at_risk", 20), ("startup", 9)]),
    "a workload without quota waits since it was made": (
        WAITS, [[queued(), other_job(30)]], [("llm", "gold", 16, False, 1800, QUOTA, 0)]),
    "an admitted workload without pods that are known has started": (
        WAITS, [[queued()], [queued(10, 12)]], [("llm", "gold", 16, True, 720, None, 0)]),
    "an evicted workload waits since its eviction": (
        WAITS, [[queued(10, 10)], [queued(None, None, 20), other_job(30)]],
        [("llm", "gold", 16, True, 600, None, 0), ("llm", "gold", 16, False, 600, QUOTA, 1)]),
    "pods of a workload have waited since it was made": (
        WAITS, [[queued(10, 10)], [pod(started=11), pod("llm-1", started=11)]],
        [("llm", "gold", 16, True, 660, None, 0)]),
    "quotas show what waits for them": (
        QUOTAS,
        [golden("workloads_and_queues_of_kueue"), golden("watch_of_pod_groups_of_volcano")],
        [("ClusterQueue", "gpu", "a100", 8, None, 0, None, 5, 534),
         ("ClusterQueue", "gpu", "h100", 16, 24, 12, 8, 5, 534),
         ("ClusterQueue", "stopped", "h100", 4, None, None, None, 0, 0),
         ("Queue", "default", "", None, None, None, 1, 1, 2),
         ("Queue", "gold", "", 24, 32, None, 16, 1, 32)]),
}  # fmt: skip
CLUSTERS = {name: f"k{number}" for number, name in enumerate(CASES)}


@pytest.fixture(scope="module")
def built(module_store, tmp_path_factory):
    """Give all cases, a cluster each, with a build after each of their lists."""
    store, path = module_store(), tmp_path_factory.mktemp("listed") / "objects.json"
    for number in range(3):
        for name, (_, lists, _) in CASES.items():
            for items in lists[number : number + 1]:
                document = {"apiVersion": "v1", "kind": "List", "items": items}
                text = items if isinstance(items, str) else json.dumps(document).replace(
                    "GPU-0", f"GPU-0-{CLUSTERS[name]}")  # fmt: skip
                path.write_text(text)
                ingest(store, "auto", [path], ReadOptions(cluster=CLUSTERS[name]))
        store.build()
    assert_equals_full_build(SimpleNamespace(store=store))
    return store


@pytest.mark.parametrize("name", CASES)
def test_what_is_shown_of_listed_objects(built, name):
    sql, _, expected = CASES[name]
    given = [CLUSTERS[name]] if "$1" in sql else None
    assert built.read(sql, given, scope=Scope(cluster=CLUSTERS[name])).rows() == expected
