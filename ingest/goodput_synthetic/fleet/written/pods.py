"""What a watch of pods by `kubectl` would have printed last of each, where HAMi names their GPUs.

A job is a Job in the namespace of its team, with a pod on each of its nodes. A cancelled one is
deleted; none is suspended.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, Fleet
from goodput_synthetic.fleet.schedule import JobRun, Schedule

WHOLE = ("h100", "h200")  # GPUs, not instances of them
PHASES = {"COMPLETED": "Succeeded", "RUNNING": "Running", "PENDING": "Pending"}
OF_CONTAINER = {"COMPLETED": ("Completed", 0), "OUT_OF_MEMORY": ("OOMKilled", 137)}
OF_POD = {
    "TIMEOUT": "DeadlineExceeded", "NODE_FAIL": "NodeLost", "PREEMPTED": "Preempting",
    "REQUEUED": "Preempting",
}  # fmt: skip


def write(path: Path, fleet: Fleet, schedule: Schedule, start: datetime) -> None:
    """Write the pods of all job runs but those on MIG instances, which HAMi cuts itself."""
    events = [
        json.dumps({
            "type": "DELETED" if run.state == "CANCELLED" else "MODIFIED",
            "object": _pod(fleet, run, place, start),
        })
        for run in schedule.runs
        if run.request.gres_type in WHOLE
        for place in range(len(run.nodes) or max(1, run.request.gpus // GPUS_PER_NODE))
    ]  # fmt: skip
    path.write_text("\n".join(events) + "\n", "utf-8", newline="\n")


def _pod(fleet: Fleet, run: JobRun, place: int, start: datetime) -> dict[str, Any]:
    def at(second: int) -> str:
        return f"{start.astimezone(UTC) + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"

    request = run.request
    job = request.run_id.rpartition("/")[-1]
    name = f"{job}-{request.job_id}-{run.number}-{place}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job}
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": request.account, "uid": name,
            "creationTimestamp": at(run.submit_s), "ownerReferences": [owner | {"uid": name}],
        },
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": PHASES.get(run.state, "Failed")},
    }  # fmt: skip
    gpus = min(request.gpus, GPUS_PER_NODE)
    if run.start_s is not None:
        units = [unit for unit in run.units if fleet.unit_node[unit] == run.nodes[place]]
        uuids, gpus = [fleet.gpu_uuids[int(fleet.unit_gpu[unit])] for unit in units], len(units)
        text = "".join(f"{uuid},NVIDIA,81559,100:" for uuid in uuids)
        found["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{text};"}
        found["spec"]["nodeName"] = fleet.nodes[run.nodes[place]].name
        scheduled = {"type": "PodScheduled", "status": "True"}
        found["status"] |= {
            "startTime": at(run.start_s),
            "conditions": [scheduled | {"lastTransitionTime": at(run.start_s)}],
        }
        state: dict[str, Any] = {"running": {"startedAt": at(run.start_s)}}
        if run.end_s is not None:
            reason, code = OF_CONTAINER.get(run.state, ("Error", 1))
            state = {"terminated": {
                "startedAt": at(run.start_s), "finishedAt": at(run.end_s), "exitCode": code,
                "reason": reason,
            }}  # fmt: skip
            if run.state == "CANCELLED":
                found["metadata"]["deletionTimestamp"] = at(run.end_s)
                found["status"]["phase"], state = "Running", {"running": {}}
            if run.state in OF_POD:
                found["status"]["reason"] = OF_POD[run.state]
        found["status"]["containerStatuses"] = [{"name": "main", "restartCount": 0, "state": state}]
    found["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": str(gpus)}}
    return found
