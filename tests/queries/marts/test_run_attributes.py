"""Workloads of runs, what they ran with, and what disturbs a comparison of them."""

from __future__ import annotations

import json

import pytest
from tests.queries.conftest import START, built_together

from goodput_queries.scope import Scope


def trained(evidence, job_events, name, *, gpus=2, length=2.0, steps=60, start=0, **more):
    """Load a run on a node of its own; more: fields of each step, and `extra` of job.start."""
    extra = more.pop("extra", None)
    evidence.node(f"n{name}", gpus)
    evidence.job(
        name, start, start + steps * length, [f"n{name}"], gpus, job_name=more.pop("job", "llm")
    )
    events = [{"event": "job.start", "t": start, "extra": json.dumps(extra) if extra else None}]
    events += job_events.steps(1, steps, start, length, **more)
    evidence.events(name, [{"extra": None, **event} for event in events], host=f"n{name}")


def attributes(evidence, run, scope=None):
    """Return the value of each attribute of a run."""
    evidence.build()
    rows = evidence.read(
        f"select attribute, value from marts.run_attributes where run_key like '%{run}%'",
        scope or Scope(),
    ).rows()
    return dict(rows)


@built_together
def test_a_run_has_what_its_job_and_the_inventory_report(cluster, job_events):
    extra = {"commit": "abc", "image": "torch:1", "nccl_version": "2.28.9", "env_hash": "e1"}
    trained(cluster, job_events, "1", samples=4.0, extra={**extra, "driver_version": "said"})
    cluster.load(
        "gpus",
        [
            {
                "cluster": cluster.name, "node": "n1", "gpu_uuid": f"n1#{i}", "slurm_index": i,
                "driver_version": "580.1", "power_limit_w": 700.0, "gpu_model": "h100",
                "valid_from_at": START,
            }
            for i in range(2)
        ],
        "nvml",
    )  # fmt: skip

    yield

    found = attributes(cluster, "1")
    assert found.items() >= {**extra, "driver_version": "580.1", "power_limit_w": "700"}.items()
    assert (found["batch"], found["gpus"], found["nodes"]) == ("4.0 samples", "2", "1")
    assert (found["workload"], found["node_names"], found["gpu_model"]) == ("llm", "n1", "h100")


@built_together
def test_a_window_has_the_version_that_held_in_it(cluster, job_events):
    trained(cluster, job_events, "1", steps=300, extra={"commit": "old"})
    cluster.events(
        "1", [{"event": "metric", "t": 300, "extra": json.dumps({"commit": "new"})}], host="n1"
    )

    yield

    begin = job_events.start_ms
    assert attributes(cluster, "1", Scope(begin, begin + 200_000))["commit"] == "old"
    assert attributes(cluster, "1", Scope(begin + 400_000, begin + 500_000))["commit"] == "new"


@built_together
def test_runs_of_one_name_size_and_model_are_one_workload(cluster, job_events):
    trained(cluster, job_events, "1", samples=8.0)
    trained(cluster, job_events, "2", samples=16.0, length=2.5, start=0.0)

    yield

    rows = cluster.read(
        "select workload, gpus, gpu_models, speed_unit, speed, step_s, batch, steps, "
        "not_comparable from marts.workload_runs order by run_key"
    ).rows()
    one, other = rows
    assert one == ("llm", 2, "h100", "samples", 4.0, 2.0, 8.0, 50, None)
    assert other[:4] == one[:4]
    assert other[4] == pytest.approx(6.4)


@built_together
def test_a_run_with_few_steps_or_throttled_ones_is_not_comparable(cluster, job_events):
    trained(cluster, job_events, "1", steps=25)
    trained(cluster, job_events, "2", steps=60, throttle_s=0.2)

    yield

    few, throttled = (
        row[0]
        for row in cluster.read(
            "select not_comparable from marts.workload_runs order by run_key"
        ).rows()
    )
    assert few == "only 15 steps after the warm-up"
    assert throttled.startswith("throttling, ")
    assert throttled.endswith(" % of its allocated time")
