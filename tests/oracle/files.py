"""The native files of a world: inventory, sacct, node events, scontrol, job events, DCGM."""

import json
import random
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.oracle import shares
from tests.oracle.clocks import ZONE
from tests.oracle.world import Gpu

File = tuple[str, Path, dict[str, Any]]  # source, path, reading options

SEPARATOR = "\x1f"
SACCT = (
    "Cluster,JobID,JobIDRaw,User,Account,QOS,Partition,State,Submit,Eligible,Start,End,ElapsedRaw,"
    "Suspended,NNodes,NodeList,ReqTRES,AllocTRES,JobName"
)
DCGM = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BLANK = "140737488355328.0"
# what a scrape has of a GPU, by whether it is active; docs, "A reading without profiling shares": a
# rejected share voids the zeros of the same reading, not its utilisation
SCRAPES = (
    {DCGM: (0.9, 0.0)},
    {DCGM: (0.0, 0.0), "DCGM_FI_PROF_SM_ACTIVE": (BLANK, BLANK), "DCGM_FI_DEV_GPU_UTIL": (90, 0)},
    {DCGM: (BLANK, BLANK), "DCGM_FI_DEV_GPU_UTIL": (100, 0)},
    {DCGM: (0.5, 0.0), "DCGM_FI_PROF_PCIE_TX_BYTES": (BLANK, BLANK)},
)


def write(world, folder):
    """Write the world's native files; return source, path and options of each."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    zone = ZONE.key if world.is_local else "UTC"

    def put(name, source, text, **options):
        (folder / name).write_text(text.replace("GPU-", own_gpus(world)))
        files.append((source, folder / name, options))

    inventory = ["cluster,node,gpu_index,slurm_index,gpu_uuid,gpu_model,mig,valid_from"]
    inventory += [
        f"{world.cluster},{gpu.node},{gpu.index},{gpu.index},{gpu.uuid},H100,,{world.epoch_s(0)}"
        for gpu in world.gpus
    ]
    put("inventory.csv", "inventory", "\n".join(inventory) + "\n")
    put(
        "sacct.txt",
        "slurm",
        "\n".join([SACCT.replace(",", SEPARATOR), *(_sacct(job, world) for job in world.jobs)])
        + "\n",
        zone=zone,
    )
    # its rows have no length, which would settle a local time that comes twice
    names = {"DOWN": "DOWN*|Not responding", "DRAIN": "DRAIN|Bad fan", "MAINT": "MAINT|Update"}
    events = ["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"]
    events.append(f"{world.cluster}||{world.epoch_s(0)}|Unknown||Cluster Registered TRES|")
    events += [
        f"{world.cluster}|{node}|{world.epoch_s(begin)}|{world.epoch_s(stop)}|{names[state]}|root(0)"
        for node, state, begin, stop in world.states
    ]
    put("events.psv", "slurm", "\n".join(events) + "\n")
    at_end = {"cluster": world.cluster, "zone": zone, "observed_at": world.start_ms + world.end}
    per_node = max(gpu.index for gpu in world.gpus) + 1
    nodes = [
        f"NodeName={node} Arch=x86_64 CPUAlloc=0 CPUEfctv=64 CPUTot=64 Gres=gpu:{per_node} "
        f"NodeAddr={node} NodeHostName={node} RealMemory=64000 AllocMem=0 State=IDLE "
        f"Partitions=gpu CfgTRES=cpu=64,gres/gpu={per_node} AllocTRES= "
        for node in sorted({gpu.node for gpu in world.gpus})
    ]
    put("nodes.txt", "slurm", "\n".join(nodes) + "\n", **at_end)
    shared = [job for job in world.jobs if job.start is not None and len(job.gpus) < per_node]
    for job in shared:
        put(
            f"job-{job.job_id}-{job.start}.txt", "slurm", _scontrol_job(job, world),
            **{**at_end, "observed_at": world.start_ms + job.start + 1000},
        )  # fmt: skip
    for job in world.jobs:
        for listing in job.listings:
            put(
                f"waits-{job.job_id}-{listing.at}.txt", "slurm", _waiting(job, listing, world),
                **{**at_end, "observed_at": world.start_ms + listing.at},
            )  # fmt: skip
    lines = sorted(
        ((event["t"], job, event) for job in world.jobs for event in job.events),
        key=lambda line: line[0],
    )
    if lines:
        text = "".join(json.dumps(_job_event(job, event, world)) + "\n" for _, job, event in lines)
        put("events.jsonl", "job-events", text, cluster=world.cluster)
    readings = sorted(
        (moment, gpu.node, gpu.index, active)
        for gpu, series in world.readings.items()
        for moment, active in series
    )
    if readings:
        dice = random.Random(f"{world.seed} scrapes")  # noqa: S311 -- chance, and no secret
        gpus = sorted(world.readings, key=lambda gpu: gpu.uuid)
        forms = {gpu: dice.choice(SCRAPES) for gpu in gpus}
        text = "".join(
            f'{metric}{{gpu="{index}",UUID="{Gpu(node, index).uuid}",Hostname="{node}",'
            f'modelName="NVIDIA H100"}} {values[not active]} {world.start_ms + moment}\n'
            for moment, node, index, active in readings
            for metric, values in forms[Gpu(node, index)].items()
        )
        put("dcgm.prom", "dcgm", text, cluster=world.cluster)
    if world.shared_gpus:
        rows = [f"{world.shared_cluster},w,{gpu.index},,{gpu.uuid},T4,,{world.epoch_s(0)}"
                for gpu in world.shared_gpus]  # fmt: skip
        put("shared.csv", "inventory", "\n".join([inventory[0], *rows]) + "\n")
        put("shared.prom", "dcgm", shares.exposition(world, DCGM), cluster=world.shared_cluster)
    return files


def own_gpus(world):
    """Return how the names of its GPUs begin in files, as in those of no other world."""
    return f"GPU-{world.seed}-"


def in_parts(files, seed):
    """Cut job events and readings into two files each, lines shuffled, and shuffle all files."""
    dice = random.Random(seed)  # noqa: S311 -- chance, and no secret
    parts = []
    for source, file, options in files:
        if source not in {"job-events", "dcgm"}:
            parts.append((source, file, options))
            continue
        kept = groupby(file.read_text().splitlines(keepends=True), _reading)
        lines = ["".join(of_one) for _, of_one in kept]  # what is scraped at once stays together
        dice.shuffle(lines)
        for number, half in enumerate((lines[::2], lines[1::2])):
            if half:
                part = file.with_name(f"{number}-{file.name}")
                part.write_text("".join(half))
                parts.append((source, part, options))
    dice.shuffle(parts)
    return parts


def _reading(line):
    """Return the labels and the time of a series; a line of another format as it is."""
    if line.startswith("{"):
        return line
    labels = line.partition("{")[2].partition("}")[0]
    return f"{labels} {line.rsplit(maxsplit=1)[-1]}"


def _sacct(job, world):
    nodes = sorted({gpu.node for gpu in job.gpus})
    tres = f"cpu=1,gres/gpu={len(job.gpus) or 1},node={len(nodes) or 1}"
    started = job.start is not None
    row = {
        "Cluster": world.cluster, "JobID": job.job_id, "JobIDRaw": job.job_id, "User": job.user,
        "Account": f"team-{job.user}", "QOS": "normal", "Partition": "gpu",
        "State": "CANCELLED by 1" if job.state == "CANCELLED" else job.state,
        "Submit": world.printed(job.submit), "Eligible": world.printed(job.submit),
        "Start": world.printed(job.start) if job.start is not None else "Unknown",
        "End": world.printed(job.end),
        "ElapsedRaw": (job.end - job.start) // 1000 if job.start is not None else 0,
        "Suspended": "00:00:00", "NNodes": len(nodes) or 1,
        "NodeList": ",".join(nodes) if started else "None assigned",
        "ReqTRES": tres, "AllocTRES": tres if started else "", "JobName": f"job{job.job_id}",
    }  # fmt: skip
    return SEPARATOR.join(str(row[name]) for name in SACCT.split(","))


def _scontrol_job(job, world):
    node = job.gpus[0].node
    indices = ",".join(str(gpu.index) for gpu in job.gpus)
    times = f"SubmitTime={world.printed(job.submit)} StartTime={world.printed(job.start)}"
    return (
        f"JobId={job.job_id} JobName=job{job.job_id} UserId={job.user}(1000) "
        f"Account=team-{job.user} JobState=RUNNING {times} EndTime=Unknown Partition=gpu "
        f"NodeList={node} NumNodes=1 NtasksPerN:B:S:C=0:0:*:* CoreSpec=* "
        f"JOB_GRES=gpu:{len(job.gpus)}   Nodes={node} CPU_IDs=1 Mem=0 "
        f"GRES=gpu:{len(job.gpus)}(IDX:{indices})\n"
    )


def _waiting(job, listing, world):
    named, excluded = (",".join(nodes) or "(null)" for nodes in (listing.named, listing.excluded))
    return (
        f"JobId={job.job_id} JobName=job{job.job_id} UserId={job.user}(1000) "
        f"Account=team-{job.user} JobState=PENDING Reason={listing.reason} Dependency=(null) "
        f"SubmitTime={world.printed(job.submit)} StartTime=Unknown EndTime=Unknown Partition=gpu "
        f"ReqNodeList={named} ExcNodeList={excluded} NodeList= NumNodes={listing.count} NumCPUs=1 "
        f"ReqTRES=cpu=1,gres/gpu={len(job.gpus) or 1} AllocTRES=(null) CoreSpec=* "
        "Features=(null) DelayBoot=00:00:00\n"
    )


def _job_event(job, event, world):
    """Return the line that a job writes; durations and moments become seconds."""
    keys = {"dur": "dur_s", "data": "data_s", "comm": "comm_s", "straggler": "straggler_s"}
    line = {"v": 1, "ts": (world.start_ms + event["t"]) / 1000, "event": event["event"]}
    line |= {"run_id": str(job.job_id), "rank": 0, "host": job.gpus[0].node}
    for key, value in event.items():
        if key in keys:
            line[keys[key]] = value / 1000
        elif key not in {"t", "event"}:
            line[key] = value
    return line
