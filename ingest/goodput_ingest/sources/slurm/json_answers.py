"""Parses `--json` output of `sacct`, `squeue`, `scontrol` and `sinfo`, of 22.05 and of 24.11.

The form moves with the release: a number is plain or {set, infinite, number}, a state is a word or
a list of words, a time that is not set is null, 0 or 4294967294. A record becomes the texts that
`sacct -P` has for it, so that one parser reads both. It lacks the database's index of a record.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from goodput_ingest.formats import gres, hostlist
from goodput_ingest.formats.json_text.json_lines import moment, printable
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.sources.slurm import accounting as slurm_accounting
from goodput_ingest.sources.slurm import fields, requests
from goodput_ingest.sources.slurm import nodes as slurm_nodes
from goodput_ingest.sources.slurm.jobs import GPU_PARTS, HOLDS, on_node, parts_on_node
from goodput_queries.evidence.batch import Reject

ARRAYS = ("jobs", "nodes", "sinfo")
NODE_LIST_MAX_CHARS = 1_000_000
NOTHING_FOUND = 9003  # sacct of 22.05 calls a time without jobs an error of this number
FLAGS_FIRST = {"PENDING", "REQUEUED", "RESIZING"}
INTEGER_MAX = 2**63 - 1


def kind_of(head: bytes) -> str | None:
    """Return which listing a JSON document is by its beginning, None for none of Slurm's."""
    text = "".join(head.decode("utf-8", errors="replace").split())  # printed with indents or not
    if not text.startswith(('{"jobs":[', '{"nodes":[', '{"sinfo":[', '{"meta":{"')):
        return None
    if text.startswith('{"sinfo":[') and '"cpus":{' in text:
        return "json sinfo"
    if '"slurmd_start_time":' in text or '"gres_used":' in text:
        return "json nodes"
    if '"job_state":' in text:
        return "json queue"
    is_record = '"association":{' in text and '"time":{' in text
    is_slurm = '"data_parser":' in text or '"openapi\\/' in text or '"openapi/' in text
    is_empty = is_slurm and ('"jobs":[]' in text or '"errors":[{' in text)
    return "json accounting" if is_record or is_empty else None


def failure(value: object) -> str:
    """Return the first of the errors that a listing names, '' for none; no jobs is none."""
    for error in value if isinstance(value, list) else []:
        if isinstance(error, dict) and error.get("error_number") != NOTHING_FOUND:
            texts = (_text(error.get("description"), 200), _text(error.get("error"), 200))
            return ": ".join(text for text in texts if text) or "no reason given"
    return ""


def last_update(value: object) -> datetime | None:
    """Return when what a listing of nodes says was true, None where it does not say."""
    seconds = _number(value)
    return moment({"last_update": int(seconds)}, "last_update") if seconds else None


def parse_records(
    records: Sequence[tuple[int, Any]], accounting: slurm_accounting.Accounting
) -> list[Parsed]:
    """Return `raw.job_runs` and `raw.job_steps` from numbered records of `sacct --json`."""
    rows: list[dict[str, str]] = []
    rejects: list[Reject] = []
    for number, record in records:
        if isinstance(record, dict):
            rows += [{"line": str(number)} | row for row in _texts(record)]
        else:
            rejects.append(Reject(number, f"slurm: record {number} is not an object."))
    given = set[str]().union(*rows) or fields.FIELDS.keys()
    names = ("line", *(name for name in fields.FIELDS if name in given))
    table = pl.DataFrame(
        {name: [row.get(name, "") for row in rows] for name in names},
        schema=dict.fromkeys(names, pl.String),
    ).with_columns(pl.col("line").cast(pl.Int64))
    runs, *steps = slurm_accounting.parse(table, accounting.tracking(table), "|")
    return [Parsed(runs.table, runs.rows, [*rejects, *runs.rejects]), *steps]


def _texts(record: dict[str, Any]) -> list[dict[str, str]]:
    """Return the texts of a record and of its steps under sacct's names of the fields."""
    time, tres = _object(record, "time"), _object(record, "tres")
    state = _state(_object(record, "state").get("current"), has_started=_is_set(time.get("start")))
    user = _text(record.get("user")) or _text(_object(record, "association").get("user"))
    job = {
        "Cluster": _text(record.get("cluster")),
        "JobID": _job_id(record),
        "JobIDRaw": _number(record.get("job_id")),
        "JobName": _text(record.get("name")),
        "User": user,
        "Account": _text(record.get("account")),
        "QOS": _text(record.get("qos")),
        "Partition": _text(record.get("partition")),
        "Reservation": _text(_object(record, "reservation").get("name")),
        "State": _cancelled(state, record.get("kill_request_user")),
        "ExitCode": _exit_code(record.get("exit_code"), state),
        "DerivedExitCode": _exit_code(record.get("derived_exit_code"), state),
        "Reason": _text(_object(record, "state").get("reason")),
        "Submit": _time(time.get("submission")),
        "Eligible": _time(time.get("eligible")),
        "Start": _time(time.get("start")),
        "End": _time(time.get("end")),
        "ElapsedRaw": _number(time.get("elapsed")),
        "Suspended": _number(time.get("suspended")),
        "TimelimitRaw": _number(time.get("limit")),
        "NodeList": _text(record.get("nodes"), NODE_LIST_MAX_CHARS),
        "ReqTRES": _tres(tres.get("requested")),
        "AllocTRES": _tres(tres.get("allocated")),
        "ReqCPUS": _number(_object(record, "required").get("CPUs")),
        "Flags": ",".join(_words(record.get("flags"))),
        "Comment": _text(_object(record, "comment").get("job")),
        "Restarts": _number(record.get("restart_cnt")),
        "Constraints": _text(record.get("constraints")),
        "NNodes": _number(record.get("allocation_nodes")),
    }
    steps = record.get("steps")
    listed = steps if isinstance(steps, list) else []
    return [job, *(_step(job, step) for step in listed if isinstance(step, dict))]


def _step(job: dict[str, str], step: dict[str, Any]) -> dict[str, str]:
    time, named = _object(step, "time"), _object(step, "step")
    step_id = _text(named.get("id")) or _number(named.get("id"))
    state = _state(step.get("state"), has_started=True)
    return {
        "Cluster": job["Cluster"],
        "JobID": f"{job['JobID']}.{step_id.rpartition('.')[2]}",  # 24.11: 2.batch, 22.05: batch
        "JobIDRaw": f"{job['JobIDRaw']}.{step_id.rpartition('.')[2]}",
        "Start": _time(time.get("start")),
        "End": _time(time.get("end")),
        "State": _cancelled(state, step.get("kill_request_user")),
        "ExitCode": _exit_code(step.get("exit_code"), state),
        "NodeList": _text(_object(step, "nodes").get("range"), NODE_LIST_MAX_CHARS),
        "AllocTRES": _tres(_object(step, "tres").get("allocated")),
    }


def _object(record: dict[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: object, max_chars: int = TEXT_MAX_CHARS) -> str:
    return printable(value, max_chars) if isinstance(value, str) else ""


def _words(value: object) -> list[str]:
    """Return the words of a state or of flags: a list, or one text."""
    found = value if isinstance(value, list) else [value]
    return [text for word in found[:100] if (text := _text(word, 100))]


def _number(value: object) -> str:
    """Return a whole number as text, '' where it is not set."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") is True else None
    if isinstance(value, bool) or not isinstance(value, int):
        return ""
    return str(value) if 0 <= value <= INTEGER_MAX else ""


def _time(value: object) -> str:
    """Return epoch seconds as text, or a time as text, which SLURM_TIME_FORMAT may have made."""
    return _number(value) or _text(value, 40)


def _is_set(value: object) -> bool:
    return _time(value) not in {"", "0", "4294967294"}


def _state(value: object, *, has_started: bool) -> str:
    """Return one word: 24.11 lists PENDING before the REQUEUED or RESIZING of a run that held."""
    words = _words(value)
    if len(words) > 1 and has_started and set(words[:2]) <= FLAGS_FIRST:
        return words[1]
    return words[0] if words else ""


def _cancelled(state: str, by: object) -> str:
    user = _text(by, 255)
    return f"CANCELLED by {user}" if state == "CANCELLED" and user else state


def _exit_code(value: object, state: str) -> str:
    """Return `code:signal`; '' where 22.05, whose status is one word, says SUCCESS of a failure."""
    if not isinstance(value, dict):
        return ""
    signal = value.get("signal")
    number = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None
    code = _number(value.get("return_code"))
    if isinstance(value.get("status"), str) and state != "COMPLETED" and not _number(number):
        return ""
    return f"{code or 0}:{_number(number) or 0}" if code or _number(number) else ""


def _tres(value: object) -> str:
    """Return a TRES list as sacct prints it; ids differ from cluster to cluster, names do not."""
    found = []
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, dict) and (count := _number(entry.get("count"))):
            kind, name = _text(entry.get("type"), 100), _text(entry.get("name"), 100)
            unit = "M" if kind == "mem" else ""
            found.append(f"{kind}/{name}={count}{unit}" if name else f"{kind}={count}{unit}")
    return ",".join(sorted(found))


def _job_id(record: dict[str, Any]) -> str:
    """Return the id as sacct prints it: 10_3, 53_[1-20%2] (the rest of an array), 12+1 or 7."""
    job_id = _number(record.get("job_id"))
    array, het = _object(record, "array"), _object(record, "het")
    array_id, task_id = _number(array.get("job_id")), _number(array.get("task_id"))
    if array_id not in {"", "0"}:
        if task_id:
            return f"{array_id}_{task_id}"
        if tasks := _tasks(_text(array.get("task"))):
            running = _object(_object(_object(array, "limits"), "max"), "running")
            limit = _number(running.get("tasks"))
            return f"{array_id}_[{tasks}{f'%{limit}' if limit not in {'', '0'} else ''}]"
    het_id, offset = _number(het.get("job_id")), _number(het.get("job_offset"))
    return f"{het_id}+{offset}" if het_id not in {"", "0"} and offset else job_id


def _tasks(mask: str) -> str:
    """Return the tasks of a bit mask (0x1FFFFE) as ranges (1-20); other texts as they are."""
    if not mask.startswith("0x"):
        return mask
    try:
        bits = bin(int(mask, 0))[:1:-1]
    except ValueError:
        return mask
    tasks = [i for i, bit in enumerate(bits) if bit == "1"]
    starts = [t for t in tasks if t == 0 or bits[t - 1] == "0"]
    ends = [t for t in tasks if t + 1 == len(bits) or bits[t + 1] == "0"]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def parse_queue(
    records: Sequence[tuple[int, Any]], cluster: str | None, observed_at: datetime | None
) -> list[Parsed]:
    """Return who has and who asks for which GPUs and parts of GPUs, of `squeue` and `scontrol`."""
    holds: Rows = []
    parts: Rows = []
    asked = []
    rejects: list[Reject] = []
    for number, record in records:
        try:
            job = record if isinstance(record, dict) else {}
            key = _job_key(job, cluster)
            of_job, of_parts = _holds(job)
            holds += [key | {"method": "scontrol"} | row for row in of_job]
            parts += [key | row for row in of_parts]
            request = requests.of_json(job)
            asked += [] if request is None else [(key, request)]
        except ValueError as error:
            rejects.append(Reject(number, f"slurm: job {number} rejected: {error}."))
    return [
        Parsed("holds", frame(holds, HOLDS), rejects),
        Parsed("gpu_parts", frame(parts, GPU_PARTS)),
        requests.parsed(asked, observed_at),
    ]


Rows = list[dict[str, object]]


def _job_key(record: dict[str, Any], cluster: str | None) -> dict[str, object]:
    job_id, submitted = _number(record.get("job_id")), _number(record.get("submit_time"))
    cluster = _text(record.get("cluster")) or cluster
    if not job_id or not submitted or cluster is None:
        raise ValueError("it has no job_id, no submit_time or no cluster")
    return {
        "cluster": cluster,
        "job_id_raw": job_id,
        "submit_at": moment({"submit_time": int(submitted)}, "submit_time"),
    }


def _holds(record: dict[str, Any]) -> tuple[Rows, Rows]:
    detail = record.get("gres_detail")
    listed = [_text(entry) for entry in detail] if isinstance(detail, list) else []
    per_node = _text(record.get("tres_per_node"))
    nodes = _allocated_nodes(record) if any(listed) or gres.parts(per_node) else []
    if any(listed) and len(nodes) != len(listed):
        raise ValueError(f"gres_detail has {len(listed)} entries for {len(nodes)} nodes")
    texts = listed if any(listed) else [per_node] * len(nodes)
    by_node = list(zip(nodes, texts, strict=True))
    found = [
        row
        for node, text in by_node
        for row in on_node(node, gres.gpu_gres(text) if any(listed) else [])
    ]
    parts = [row for node, text in by_node for row in parts_on_node(node, text)]
    return found, [] if found else parts


def _allocated_nodes(record: dict[str, Any]) -> list[str]:
    """Return the job's nodes in the order in which gres_detail lists them."""
    resources = _object(record, "job_resources")
    nodes = _object(resources, "nodes").get("allocation") or resources.get("allocated_nodes")
    found = [n for n in nodes if isinstance(n, dict)] if isinstance(nodes, list) else []
    names = [_text(n.get("name")) or _text(n.get("nodename")) for n in found]
    return names or hostlist.expand(_text(record.get("nodes")), gres.GPUS_PER_NODE_MAX * 64)


def parse_nodes(
    records: Sequence[tuple[int, Any]], cluster: str | None, observed_at: datetime | None
) -> list[Parsed]:
    """Return nodes, GPU slots, MIG instances and states from a list of nodes or of sinfo's groups.

    sinfo groups nodes that are alike, a group in each of their partitions: they are gathered.
    """
    nodes: dict[str, slurm_nodes.Node] = {}
    rejects: list[Reject] = []
    for number, record in records:
        found = _nodes(record, number) if isinstance(record, dict) else []
        if not found:
            rejects.append(Reject(number, f"slurm: node {number} has no name or no state."))
        for node in found:
            before = nodes.setdefault(node.name, node)
            if before is not node:
                before.partitions = [*(before.partitions or []), *(node.partitions or [])]
    return slurm_nodes.tables(list(nodes.values()), rejects, cluster, observed_at)


def _nodes(record: dict[str, Any], number: int) -> list[slurm_nodes.Node]:
    """Return the node of a record, or the nodes of a group of sinfo."""
    group = _object(record, "nodes").get("nodes")
    if isinstance(group, list):
        cpus, memory = _object(record, "cpus"), _object(record, "memory")
        state, reason = _object(record, "node").get("state"), _object(record, "reason")
        size = (_alike(cpus), _alike(memory), _text(_object(record, "gres").get("total")))
        partitions = _words(_object(record, "partition").get("name"))
        features = _object(record, "features").get("active")
        why, user = _text(reason.get("description")), _text(reason.get("user"))
        names = [_text(name, 255) for name in group]
    else:
        state = [*_words(record.get("state")), *_words(record.get("state_flags"))]
        size = (record.get("cpus"), record.get("real_memory"), _text(record.get("gres")))
        partitions = _words(record.get("partitions"))
        features = record.get("active_features")
        why, user = _text(record.get("reason")), _text(record.get("reason_set_by_user"))
        names = [_text(record.get("name"), 255)]
    words = "+".join(_words(state)).upper()
    if not words or not all(names):
        return []
    cpus_count, memory_mib = (_number(value) for value in size[:2])
    return [
        slurm_nodes.Node(
            name=name,
            line=number,
            cpus=slurm_nodes.integer(cpus_count),
            memory_mib=slurm_nodes.integer(memory_mib),
            gres=size[2],
            gres_used=_text(record.get("gres_used")) or None,
            partitions=partitions,
            features=_features(features),
            states=[words],
            reason=why or None,
            user=user or None,
        )
        for name in names
    ]


def _features(value: object) -> list[str] | None:
    """Return the features of a node: a list, or one text with commas."""
    if value is None:
        return None
    return [name for text in _words(value) for name in text.split(",") if name]


def _alike(amounts: dict[str, Any]) -> object:
    """Return what all nodes of a group have, None where they differ."""
    least = amounts.get("minimum")
    return least if least == amounts.get("maximum") else None
