"""Free GPU time with demand: which waiting jobs could have used it, and which instances."""

from tests.queries.conftest import Cluster, each, shown_by

DEMAND, NONE = {"idle_with_demand": 100}, {"idle_no_demand": 100}
# what it shows: what the accounting has of a job that waits 100 s, GPU-seconds of a free GPU
test_a_job_that_waits = shown_by({
    "for resources": ({"reason": "Resources"}, DEMAND),
    "without a reason": ({"reason": None}, DEMAND),
    "for a reason that no table has": ({"reason": "SomethingNew"}, DEMAND),
    "for its time": ({"reason": "BeginTime"}, NONE),
    "held by its user": ({"reason": "JobHeldUser"}, NONE),
    "held by a limit of its QOS": ({"reason": "QOSMaxGRESPerUser"}, NONE),
    "held by a limit of its association": ({"reason": "AssocGrpGRES"}, NONE),
    "with details of the reason": ({"reason": "Dependency (afterok:7)"}, NONE),
    "for its reservation": ({"reason": "Resources", "reservation": "course"}, NONE),
    # after the start, which ended the wait
    "a listing without a reason ends nothing": (
        {"start": 80, "listings": [(40, "Priority"), (95, None)]},
        {"idle_with_demand": 80, "idle_no_demand": 20, "unknown": 20}),
}, before=lambda c: c.node("a", 1, partitions=("p",), watched=100), read=Cluster.gpu_s,
    load=lambda c, job: waiting_job(c, **job))  # fmt: skip


def seen(second, reason):
    return lambda c: waiting_job(c, reason=reason, observed_at=c.at(second))


test_the_accounting = shown_by({"the last reason that it has decides": (
             [seen(50, "QOSMaxGRESPerUser"), seen(90, "Priority")], [NONE, DEMAND])},
    before=lambda c: c.node("a", 1, partitions=("p",), watched=100), read=Cluster.gpu_s,
    builds=2)  # fmt: skip
A_B = {"a": ["h100", "ib"], "b": ["a100"]}
# what it shows: nodes with features, what a listing has of the job, the nodes it could use
test_a_job_could_use_the_nodes_it_asks_for = shown_by({
    "any node": (A_B, {}, "ab"),
    "a node": (A_B, {"requested_nodes": ["a"]}, "a"),
    "a node that is not there": (A_B, {"requested_nodes": ["z"]}, ""),
    "a node among more": (A_B, {"requested_nodes": ["a"], "nodes_requested": 2}, "ab"),
    "as many nodes as it names": (A_B, {"requested_nodes": ["a"], "nodes_requested": 1}, "a"),
    "all nodes but one": (A_B, {"excluded_nodes": ["a"]}, "b"),
    "a feature": (A_B, {"feature_sets": ["ib"]}, "a"),
    "two features": (A_B, {"feature_sets": ["a100&ib"]}, ""),
    "one of two": (A_B, {"feature_sets": ["a100", "h100&ib"]}, "ab"),
    "a feature of nodes whose features no source names": (
        {"a": None, "b": ["a100"]}, {"feature_sets": ["ib"]}, "a"),
    "a feature of nodes without any": ({"a": [], "b": ["ib"]}, {"feature_sets": ["ib"]}, "b"),
}, load=lambda c, nodes, asked: [
    *([c.node(node, 1), c.add("nodes", node=node, partitions=["p"], features=features)]
      for node, features in nodes.items()),
    c.watched(100), waiting_job(c), listing(c, 50, reason="Resources", **asked)],
    read=lambda c: "".join(c.read(
        "select node from marts.unit_states where category = 'idle_with_demand' order by node"
    )["node"]))  # fmt: skip


# what a job asks for that waits 70 s and never runs; are there other, whole GPUs; GPU-seconds of
# two free instances
@each({
    "its profile": ("3g.40gb", False, {"idle_with_demand": 60, "stranded": 10}),
    "its profile and model": (
        "nvidia_h100_3g.40gb", False, {"idle_with_demand": 60, "stranded": 10}),
    "any": (None, False, {"idle_with_demand": 60, "stranded": 10}),
    "another profile": ("1g.10gb", False, {"idle_no_demand": 60, "stranded": 10}),
    "a whole GPU": ("h100", False, {"idle_no_demand": 60, "stranded": 10}),
    "a profile that another GPU could give": (
        "3g.40gb", True, {"idle_with_demand": 60 + 70, "stranded": 10, "idle_no_demand": 70}),
})  # fmt: skip
def test_demand_for_two_free_instances(cluster, gpu_type, has_others, expected):
    cluster.node("m", 1 + has_others, partitions=("p",))
    if has_others:
        cluster.node("other", 1, model="l40s", partitions=("p",))
    parts = [{"gpu_instance": f"3g.40gb.{n}", "slurm_index": n} for n in range(2)]
    cluster.add("gpu_instances", *parts, gpu_uuid="m#0", profile="3g.40gb", compute_slices=3)
    cluster.watched(70)
    asked = {"gpus_requested": 1, "gpu_type_requested": gpu_type, "partition": "p"}
    cluster.job("1", None, 70, [], 0, "CANCELLED", submit=0, **asked)
    yield
    assert cluster.gpu_s() == expected


def waiting_job(cluster, start=None, listings=(), **more):
    run = (start, 100, ["z"], 1, "COMPLETED") if start else (None, None, [], 0, "PENDING")
    cluster.job("1", *run, submit=0, gpus_requested=1, partition="p", **more)
    for second, reason in listings:
        listing(cluster, second, reason=reason)


def listing(cluster, second, **request):
    cluster.add("job_requests", job_id_raw="1", submit_at=0, observed_at=second, **request)
