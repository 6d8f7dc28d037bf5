"""Job runs as the controller lists them: all there is of a cluster without accounting (slurmdbd).

A record of `scontrol show job`, of `squeue --json` or of the file of jobs that have ended
(jobcomp/filetxt) becomes the texts that `sacct -P` has for it: one parser reads all. The controller
forgets a job minutes after its end: one that runs in its last listing, and is in no later one,
ended with the former.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from goodput_ingest.formats import gres
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.sources.slurm import accounting as slurm_accounting
from goodput_ingest.sources.slurm import fields
from goodput_ingest.sources.slurm.jobs import records
from goodput_queries.evidence.batch import Reject

UNKNOWN: Final = "Unknown"
WAITING: Final = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
HELD: Final = {  # it has its nodes, and EndTime is when its time limit ends it
    *("RUNNING", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT"),
    *("STOPPED", "SUSPENDED"),
}
_TWICE: Final = ("StartTime", "EndTime", "NodeList", "SubmitTime", "Gres", "Tres")
_NO_TEXT: Final = {"(null)", "None", "N/A"}
_HEAD: Final = re.compile(
    r"JobId=(?P<raw>\d{1,18})(?: ArrayJobId=(?P<array>\d{1,18}) ArrayTaskId=(?P<task>\S+))?"
    r"(?: ArrayTaskThrottle=\d+)?(?: HetJobId=(?P<het>\d{1,18}) HetJobOffset=(?P<offset>\d+))?"
    r" JobName=(?P<name>.*?)(?: HetJobIdSet=\S+)?"
    r"(?: UserId=(?P<user>[^\s(]+)\((?P<uid>\d+)\)(?: .*?)?)? JobState="
)
_TEXTS: Final = {  # field of sacct: of scontrol
    "Account": "Account",
    "QOS": "QOS",
    "Partition": "Partition",
    "Reservation": "Reservation",
    "State": "JobState",
    "ExitCode": "ExitCode",
    "DerivedExitCode": "DerivedExitCode",
    "Reason": "Reason",
    "Submit": "SubmitTime",
    "Eligible": "EligibleTime",
    "Start": "StartTime",
    "End": "EndTime",
    "Elapsed": "RunTime",
    "Timelimit": "TimeLimit",
    "NNodes": "NumNodes",
    "NodeList": "NodeList",
    "ReqTRES": "ReqTRES",
    "AllocTRES": "AllocTRES",
    "NCPUS": "NumCPUs",
    "Restarts": "Restarts",
}
_TIMES: Final = {  # what a job asked for GPUs by, and of what it has how many
    "TresPerJob": None,
    "TresPerNode": "NumNodes",
    "Gres": "NumNodes",  # of releases before 19.05
    "TresPerTask": "NumTasks",
}
# decide when a job ran and whose it was: a name or a comment may imitate them
_ONCE: Final = {"UserId", "JobState", "SubmitTime", "StartTime", "EndTime", "NodeList"}
_NAMES: Final = (*_TEXTS.values(), "UserId", "TRES", "JOB_GRES", "NumTasks", *_TIMES)
_TEXTS_PATTERN: Final = re.compile(rf" ({'|'.join(_NAMES)})=(\S*)")


# a line of jobcomp/filetxt: name and folder are free text, and before 20.11 it has Gres a node
ENDED: Final = re.compile(
    r"JobId=(?P<JobIDRaw>\d{1,18}) UserId=(?P<User>[^\s(]+)\((?P<UID>\d+)\) GroupId=\S* "
    r"Name=(?P<JobName>.*) JobState=(?P<State>[A-Z_]+) Partition=(?P<Partition>\S*) "
    r"TimeLimit=(?P<TimelimitRaw>\S*) StartTime=(?P<Start>\S*) EndTime=(?P<End>\S*) "
    r"NodeList=(?P<NodeList>\S*) NodeCnt=(?P<NNodes>\d{1,6}) ProcCnt=(?P<NCPUS>\d{1,9}) "
    r"WorkDir=.* ReservationName=(?P<Reservation>\S*) "
    r"(?:Gres=(?P<Gres>\S*)|Tres=(?P<AllocTRES>\S*)) "
    r"Account=(?P<Account>\S*) QOS=(?P<QOS>\S*) WcKey=\S* Cluster=(?P<Cluster>\S*) "
    r"SubmitTime=(?P<Submit>\S*) EligibleTime=(?P<Eligible>\S*)"
    r"(?: DerivedExitCode=(?P<DerivedExitCode>\S*) ExitCode=(?P<ExitCode>\S*))?\s*"
)


def of_ended(text: str, accounting: slurm_accounting.Accounting) -> list[Parsed]:
    """Return `raw.job_runs` of jobcomp/filetxt, a line a job."""
    rows: list[dict[str, str]] = []
    rejects: list[Reject] = []
    for record in records(text, "JobId="):
        found = ENDED.fullmatch(record.text)
        if found is None or any(
            record.text.count(f" {name}=") > 1 for name in ("JobState", *_TWICE)
        ):
            reason = "slurm: job run rejected: it is no line of jobcomp/filetxt."
            rejects.append(Reject(record.line, reason, record.text))
            continue
        row = {
            name: "" if value in _NO_TEXT else value or ""
            for name, value in found.groupdict().items()
        }
        per_node = _asked({"Gres": row.pop("Gres"), "NumNodes": row["NNodes"]})
        row["AllocTRES"] = _with_gpus(row["AllocTRES"], per_node)
        rows.append({"line": str(record.line), "JobID": row["JobIDRaw"], **row})
    return _parsed(rows, rejects, accounting, is_listed=False)


def of_listing(text: str, accounting: slurm_accounting.Accounting) -> list[Parsed]:
    """Return `raw.job_runs` of `scontrol show job`; a job in which a field comes twice is none."""
    rows: list[dict[str, str]] = []
    rejects: list[Reject] = []
    for record in records(text, "JobId="):
        try:
            rows.append({"line": str(record.line)} | _of_text(record.text))
        except ValueError as error:
            rejects.append(Reject(record.line, f"slurm: job run rejected: {error}.", record.text))
    return _parsed(rows, rejects, accounting)


def of_queue(
    found: Sequence[tuple[int, Any]], accounting: slurm_accounting.Accounting
) -> list[Parsed]:
    """Return the same of numbered records of `squeue --json` or `scontrol show jobs --json`."""
    rows: list[dict[str, str]] = []
    rejects: list[Reject] = []
    for number, job in found:
        if isinstance(job, dict):
            try:
                rows += [{"line": str(number)} | row] if (row := _of_json(job)) else []
            except ValueError as error:
                rejects.append(Reject(number, f"slurm: job run {number} rejected: {error}."))
    return _parsed(rows, rejects, accounting)


def _parsed(
    rows: list[dict[str, str]],
    rejects: list[Reject],
    accounting: slurm_accounting.Accounting,
    *,
    is_listed: bool = True,
) -> list[Parsed]:
    if not rows and not rejects:
        return []
    names = ("line", *fields.FIELDS)
    table = pl.DataFrame(
        {name: [row.get(name, "") for row in map(_held, rows)] for name in names},
        schema=dict.fromkeys(names, pl.String),
    ).with_columns(pl.col("line").cast(pl.Int64))
    # without accounting no TRES may count GPUs: what an ended job had is in the listings before
    tracking = accounting.tracking(table.select("ReqTRES"))
    runs, *_ = slurm_accounting.parse(table, tracking, "|")
    listed = runs.rows.with_columns(is_listed=pl.lit(value=is_listed))
    return [Parsed(runs.table, listed, [*rejects, *runs.rejects])]


def _held(row: dict[str, str]) -> dict[str, str]:
    """Return a row without times that are none yet: the planned ones of what waits or runs."""
    if row["State"] in WAITING:
        return row | {"State": "PENDING", "Start": UNKNOWN, "End": UNKNOWN, "Elapsed": ""}
    if row["State"] in HELD:
        return row | {"State": "RUNNING", "End": UNKNOWN}
    return row if row["NodeList"] else row | {"Start": UNKNOWN}  # it was cancelled while it waited


def _of_text(text: str) -> dict[str, str]:
    """Return the fields of a record; ValueError where free text may imitate one."""
    head = _HEAD.match(text)
    if head is None:
        raise ValueError("it does not begin with JobId, JobName, JobState")
    found: dict[str, str] = {}
    for name, value in _TEXTS_PATTERN.findall(text, head.end("name")):
        if name in found and name in _ONCE:
            raise ValueError(f"{name}= appears twice")
        found.setdefault(name, "" if value in _NO_TEXT else value)
        if name in _TIMES and found[name] != value:
            found[name] = ""  # which of them counts is not known
    row = {field: found.get(name, "") for field, name in _TEXTS.items()}
    total = found.get("TRES", "")  # of releases before 23.02
    listed = [found["JOB_GRES"]] if "JOB_GRES" in found else _asked(found)
    return row | {
        "JobID": _job_id(head["raw"], head["array"], head["task"], head["het"], head["offset"]),
        "JobIDRaw": head["raw"],
        "JobName": head["name"],
        "User": head["user"] or "",
        "UID": head["uid"] or "",
        "ReqTRES": _with_gpus(row["ReqTRES"] or total, _asked(found)),
        "AllocTRES": _with_gpus(row["AllocTRES"] or total, listed) if row["NodeList"] else "",
    }


def _asked(found: dict[str, str]) -> list[str] | None:
    """Return the GPUs that a job asked for as texts of gres, a text a node or task.

    None: it asked for none in this way.
    """
    for name, of in _TIMES.items():
        text = re.sub(r"gres[/:]", "", found.get(name, "")).replace("=", ":")
        if re.search(r"\bgpu\b", text):
            times = re.match(r"\d{1,4}", found.get(of, "") if of else "1")
            return [re.sub(r"\bgpu(?=,|$)", "gpu:1", text)] * (int(times[0]) if times else 1)
    return None


def _with_gpus(tres: str, listed: Sequence[str] | None) -> str:
    """Return what a job has, with the GPUs that are listed where no TRES counts GPUs.

    listed: texts of gres; None: they are not known
    """
    if slurm_accounting.TRACKED in tres or listed is None:
        return tres
    gpus = sum(one.gpus for text in listed for one in gres.gpu_gres(text))
    return f"{tres},{slurm_accounting.TRACKED}={gpus}".lstrip(",")


def _job_id(
    raw: str, array: str | None, task: str | None, het: str | None, offset: str | None
) -> str:
    """Return the id as sacct prints it: 502_7, 502_[8-99] (the rest of an array), 12+1 or 7."""
    if array and task:
        return f"{array}_{task}" if task.isdigit() else f"{array}_[{task}]"
    return f"{het}+{offset}" if het else raw


def _of_json(job: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a record; none where it has no id, submit time or state."""
    states = job.get("job_state")
    state = str((states[0] if isinstance(states, list) and states else states) or "")
    raw, submit = _number(job.get("job_id")), _number(job.get("submit_time"))
    if not (raw and submit and state):
        return {}
    array, het = _number(job.get("array_job_id")), _number(job.get("het_job_id"))
    task = _number(job.get("array_task_id"), zero="0") or _text(job.get("array_task_string"))
    offset = _number(job.get("het_job_offset"), zero="0")
    detail = job.get("gres_detail")
    return {
        "Cluster": _text(job.get("cluster")),
        "JobID": _job_id(raw, array, task, het, offset),
        "JobIDRaw": raw,
        "JobName": _text(job.get("name")),
        "User": _text(job.get("user_name")),
        "UID": _number(job.get("user_id"), zero="0"),
        "Account": _text(job.get("account")),
        "QOS": _text(job.get("qos")),
        "Partition": _text(job.get("partition")),
        "Reservation": _text(job.get("resv_name")),
        "State": state,
        "Reason": _text(job.get("state_reason")),
        "Submit": submit,
        "Eligible": _number(job.get("eligible_time")),
        "Start": _number(job.get("start_time")) or UNKNOWN,
        "End": _number(job.get("end_time")) or UNKNOWN,
        "TimelimitRaw": _number(job.get("time_limit")),
        "NNodes": _number(job.get("node_count")),
        "NodeList": _text(job.get("nodes")),
        "ReqTRES": _text(job.get("tres_req_str")),
        "AllocTRES": _with_gpus(
            _text(job.get("tres_alloc_str")),
            [_text(one) for one in detail] if state in HELD and isinstance(detail, list) else None,
        ),
        "NCPUS": _number(job.get("cpus")),
        "Restarts": _number(job.get("restart_cnt"), zero="0"),
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) and value not in _NO_TEXT else ""


def _number(value: object, *, zero: str = "") -> str:
    """Return a whole number as text, '' where it is not set; zero: what 0 is."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") is True else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return ""
    return str(value) if value else zero
