"""Workloads of runs: what they ran with, what disturbs a comparison, baselines and scaling."""

import json

import pytest
from tests.queries.conftest import START, START_MS, shown_by, steps

from goodput_queries.scope import Scope
from goodput_scenarios.measured import measured


def trained(evidence, name, *, gpus=2, length=2.0, count=60, start=0, **more):
    """Load a run on a node of its own; more: fields of each step, and `extra` of job.start."""
    extra = more.pop("extra", None)
    evidence.node(f"n{name}", gpus, model=more.pop("model", "h100"))
    end, name_of_job = start + count * length, more.pop("job", "llm")
    evidence.job(name, start, end, [f"n{name}"], gpus, job_name=name_of_job)
    events = [{"event": "job.start", "t": start, "extra": json.dumps(extra) if extra else None}]
    events += steps(1, count, start, length, **more)
    evidence.events(name, [{"extra": None, **event} for event in events], host=f"n{name}")


def attributes(evidence, run, scope=None):
    """Return the value of each attribute of a run."""
    sql = f"select attribute, value from marts.run_attributes where run_key like '%{run}%'"
    return dict(evidence.read(sql, scope or Scope()).rows())


def test_a_run_has_what_its_job_and_the_inventory_report(cluster):
    extra = {"commit": "abc", "image": "torch:1", "nccl_version": "2.28.9", "env_hash": "e1"}
    trained(cluster, "1", samples=4.0, extra={**extra, "driver_version": "said"})
    cluster.add("gpus", *({"gpu_uuid": f"n1#{i}", "slurm_index": i} for i in range(2)),
                source="nvml", node="n1", driver_version="580.1", power_limit_w=700.0,
                gpu_model="h100", valid_from_at=START)  # fmt: skip
    cluster.counted(cluster.gpu("n1#0"), "power_limit_enforced_w", [(60, 500)])
    yield
    found = attributes(cluster, "1")
    assert found.items() >= {**extra, "driver_version": "580.1", "power_limit_w": "500"}.items()
    assert (found["batch"], found["gpus"], found["nodes"]) == ("4.0 samples", "2", "1")
    assert (found["workload"], found["node_names"], found["gpu_model"]) == ("llm", "n1", "h100")


def test_a_window_has_the_version_that_held_in_it(cluster):
    trained(cluster, "1", count=300, extra={"commit": "old"})
    new = {"event": "metric", "t": 300, "extra": json.dumps({"commit": "new"})}
    cluster.events("1", [new], host="n1")
    yield
    begin = START_MS
    assert attributes(cluster, "1", Scope(begin, begin + 200_000))["commit"] == "old"
    assert attributes(cluster, "1", Scope(begin + 400_000, begin + 500_000))["commit"] == "new"


NAMES = ("train-001", "train-002", "train-004", "bs-16", "bs-32", "bs-64", "llama-2", "llama-3",
         "llama-3", "a.9", "a.8", "a.7", "night-d1", "night-d2", "night-d3")  # fmt: skip
SCALING = "from marts.scaling_efficiency order by gpus"
# what it shows: runs (more of each), what is read of them
test_workloads = shown_by({
    "runs of one name, size and model are one workload": (
        [{"samples": 8.0}, {"samples": 16.0, "length": 2.5}],
        "select workload, gpus, gpu_models, speed_unit, round(speed, 6), step_s, batch, steps, "
        "not_comparable from marts.workload_runs order by run_key",
        [("llm", 2, "h100", "samples", 4.0, 2.0, 8.0, 50, None),
         ("llm", 2, "h100", "samples", 6.4, 2.5, 16.0, 50, None)]),
    # sizes do not follow each other, and a name of several runs is a name
    "names that only number runs are one workload": (
        [{"samples": 8.0, "start": 10 * place, "job": name} for place, name in enumerate(NAMES)],
        "select workload, runs from marts.baselines order by all",
        [("a.7", 1), ("a.8", 1), ("a.9", 1), ("bs-16", 1), ("bs-32", 1), ("bs-64", 1),
         ("llama-2", 1), ("llama-3", 2), ("night-d#", 3), ("train-#", 3)]),
    "a run with few steps or throttled ones is not comparable": (
        [{"count": 25}, {"count": 60, "throttle_s": 0.2}],
        r"select regexp_replace(not_comparable, 'ing, \d.* %', 'ing, N %') "
        "from marts.workload_runs order by run_key",
        [("only 15 steps after the warm-up",), ("throttling, N % of its allocated time",)]),
    "a new commit is a change from the run before": (
        [{"samples": 8.0, "extra": {"commit": "a", "image": "i"}},
         {"samples": 8.0, "start": 200, "extra": {"commit": "b", "image": "i"}},
         {"samples": 8.0, "start": 400, "extra": {"commit": "c"}, "job": "other"}],
        "select attribute, value_before, value_after, run_id_before, run_id "
        "from marts.version_changes", [("commit", "a", "b", "1", "2")]),
    # speeds 4, 5, 4, then 2: the last run is half as fast as the others; a short one is out
    "the baseline of a workload is its best and its usual run": (
        [*({"samples": 8.0, "length": length, "start": 250 * place}
           for place, length in enumerate((2.0, 1.6, 2.0, 4.0), 1)), {"samples": 8.0, "count": 15}],
        "select runs, left_out_runs, best_speed, best_run_id, usual_speed, "
        "round(run_variation_ratio, 2), last_run_id, last_change_ratio from marts.baselines",
        [(4, 1, 5.0, "2", 4.0, 0.34, "4", -0.5)]),
    # eight GPUs are 2.4 times as fast as two: each is worth 0.6 of them, and 3 add nothing
    "a workload that scales badly is advised against more GPUs": (
        [{"samples": 8.0, "gpus": 2, "length": 2.4}, {"samples": 8.0, "gpus": 8, "length": 1.0},
         {"samples": 8.0, "gpus": 2, "job": "alone"}],
        "select workload, gpus, round(efficiency_ratio, 6), round(idle_gpus, 6), advice "
        f"{SCALING}",
        [("llm", 2, 1.0, 0.0, "the smallest size"),
         ("llm", 8, 0.6, 3.2, "do not scale yet: 3 GPUs of 8 add nothing")]),
    # 10 and 20 % on two and eight GPUs, so 25 % on 16; on four nothing measures it
    "a size has the share of exposed communication that its runs measure": (
        [{"samples": 8.0, "gpus": gpus, "length": 1.0} | more for gpus, more in
         ((2, {"comm_s": 0.1}), (4, {}), (8, {"comm_s": 0.2}))],
        f"select gpus, round(columns(['usual_comm_ratio', 'twice_comm_ratio']), 2) {SCALING}",
        [(2, 0.1, None), (4, None, None), (8, 0.2, 0.25)]),
    "runs of a benchmark stand beside published times": (
        [{"gpus": 8, "job": "bert", "count": 327}],
        "select published_time_s, own_runs, own_time_s, time_ratio from marts.reference_results "
        "where benchmark = 'bert' and gpus = 8", [(327.0, 1, 654.0, 2.0)]),
}, load=lambda c, runs: [
    trained(c, f"{n}", **more) for n, more in enumerate(runs, 1)])  # fmt: skip


def test_what_a_new_model_is_worth_is_measured_on_workloads_of_both(cluster):
    for place, (job, old, new) in enumerate([("llm", 0.57, 4.33), ("vlm", 1.0, 3.4)]):
        trained(cluster, f"a{place}", samples=old, job=job, model="H100 SXM")
        trained(cluster, f"h{place}", samples=new, job=job, model="GH200")
    yield
    columns = "speed_up, lowest_speed_up, highest_speed_up, workloads, runs"
    of_h100 = "from marts.gpu_model_speed_ups where old_model = 'H100 SXM'"
    found = cluster.read(f"select {columns} {of_h100}").row(0)
    assert found == pytest.approx((5.498, 3.4, 7.596, 2, 4), abs=1e-3)
    given = measured(cluster.store, "upgrade", Scope(cluster=cluster.name), "H100 SXM")
    span = given["speed_up"].span
    assert (float(span.lo), float(span.hi)) == pytest.approx((3.4, 7.596), abs=1e-3)
    assert "GH200, 2 workloads, 4 runs" in given["speed_up"].source
