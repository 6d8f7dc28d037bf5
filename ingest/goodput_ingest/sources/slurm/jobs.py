"""`scontrol show job -d`, a line a job or many: which GPUs of which node a job has and asks for.

Names and comments are free text in the same line as the fields. A record in which a field that
must be unique appears twice may be forged: it is rejected.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats import gres, hostlist, raw_tables
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.formats.timestamps import instants, repeated
from goodput_ingest.sources.slurm import repeated_hours, requests
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import Reject

HOLDS = raw_tables.columns("holds", "source", "gpu_uuid", "gpu_instance", "start_at", "end_at")
GPU_PARTS = raw_tables.columns("gpu_parts", "source")
_NODE_LIST = re.compile(r" NodeList=(\S+)")
_PER_NODE = re.compile(r" TresPerNode=(\S+)")
_RECORD = re.compile(r"^JobId=([0-9]{1,18}) ")
_NODES = re.compile(
    r" CoreSpec=\S*(?: JOB_GRES=(?P<job_gres>\S*))?"
    r"(?P<nodes>(?:\s+Nodes=\S+ CPU_IDs=\S* Mem=\S* GRES=\S*)*)"
)
_NODE = re.compile(r"Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)")
_SUBMIT = re.compile(r" SubmitTime=(\S*)")
_STATE = re.compile(r" JobState=[A-Z_]+ ")
_ONCE = (" JobState=", " SubmitTime=", " CoreSpec=")


@dataclass(frozen=True)
class Record:
    """One job as printed: number of its first line and its text on one line."""

    line: int
    text: str


def records(text: str, start: str) -> Iterator[Record]:
    """Yield the records of a scontrol text: each begins where a line starts with `start`."""
    first, lines = 0, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(start):
            if lines:
                yield Record(first, " ".join(lines))
            first, lines = number, [line.rstrip()]
        elif lines and line.strip():
            lines.append(line.strip())
    if lines:
        yield Record(first, " ".join(lines))


def parse_jobs(
    text: str, *, cluster: str | None, zone: ZoneInfo | None, observed_at: datetime | None = None
) -> list[Parsed]:
    """Return `raw.holds`, a row a GPU or a node where only the number is known, parts and requests.

    Raises IngestError where the cluster or the zone of the submit times is missing.
    """
    if cluster is None:
        raise IngestError(
            "slurm: scontrol does not name the cluster of its jobs. Name it with --cluster."
        )
    found = list(records(text, "JobId="))
    submits, rejects = [], []
    for record in found:
        match = _SUBMIT.search(record.text)
        submits.append(match[1] if match else None)
    submit_at, problems = _submits(pl.Series("submit_at", submits, pl.String), zone)
    holds: list[dict[str, object]] = []
    parts: list[dict[str, object]] = []
    asked = []
    for record, at, problem in zip(found, submit_at, problems, strict=True):
        try:
            job_id, rows = _job(record.text)
            of_parts = [] if rows else _parts(record.text)
            if problem is not None or at is None:
                raise ValueError(problem or "it has no SubmitTime")
        except ValueError as error:
            rejects.append(Reject(record.line, f"slurm: job rejected: {error}.", record.text))
            continue
        key = {"cluster": cluster, "job_id_raw": job_id, "submit_at": at, "method": "scontrol"}
        holds += [key | row for row in rows]
        of_job = {name: value for name, value in key.items() if name != "method"}
        parts += [of_job | row for row in of_parts]
        try:
            request = requests.of_text(record.text)
        except ValueError as error:  # costs no GPU that it has
            reason = f"slurm: what the job asks of nodes is rejected: {error}."
            rejects.append(Reject(record.line, reason, record.text))
            continue
        asked += [] if request is None else [(key, request)]
    return [
        Parsed("holds", frame(holds, HOLDS), rejects),
        Parsed("gpu_parts", frame(parts, GPU_PARTS)),
        requests.parsed(asked, observed_at),
    ]


def _submits(texts: pl.Series, zone: ZoneInfo | None) -> tuple[pl.Series, pl.Series]:
    """Return submit times and what is wrong; one that comes twice is the earlier, as in sacct's."""
    at, problems = instants(texts, zone)
    if zone is None or not problems.str.contains(repeated_hours.TWICE, literal=True).any():
        return at, problems
    earlier, _ = repeated(texts, zone)
    is_twice = earlier.is_not_null()
    return at.zip_with(~is_twice, earlier), problems.set(is_twice, None)


def _job(text: str) -> tuple[str, list[dict[str, object]]]:
    """Return a job's id and its rows; raises ValueError where the record cannot be trusted."""
    match = _RECORD.match(text)
    if match is None:
        raise ValueError("JobId is not a number")
    for name in _ONCE:
        if (times := text.count(name)) != 1:
            raise ValueError(f"{name.strip()} appears {times} times, expected once")
    if _STATE.search(text) is None:
        raise ValueError("JobState is no state of a job")
    found = _NODES.search(text)
    if found is None:
        return match[1], []
    is_of_gpus = " JobState=RUNNING " in text and "GRES=gpu" in text[found.start() :]
    groups = [
        (hostlist.expand(nodes, gres.GPUS_PER_NODE_MAX * 64), gres.gpu_gres(listed))
        for nodes, listed in _NODE.findall(found["nodes"])
    ]
    rows = [row for nodes, listed in groups for node in nodes for row in on_node(node, listed)]
    nodes = [node for expanded, _ in groups for node in expanded]
    if not rows and len(nodes) == 1 and found["job_gres"]:
        rows = on_node(nodes[0], [gres.Gres(g.type, g.gpus) for g in _job_gres(found)])
    if is_of_gpus and not rows:
        raise ValueError("it runs with GPUs, and JOB_GRES, Nodes and GRES do not say which")
    return match[1], rows


def _parts(text: str) -> list[dict[str, object]]:
    """Return shards and MPS of a job that has no whole GPU, a row a node and kind."""
    found = _NODES.search(text)
    listed = _NODE.findall(found["nodes"]) if found else []
    if not any(gres.parts(one) for _, one in listed):
        nodes, per_node = _NODE_LIST.findall(text), _PER_NODE.findall(text)
        # a name or a comment may imitate them
        listed = [(nodes[0], per_node[0])] if len(nodes) == len(per_node) == 1 else []
    return [
        row
        for nodes, one in listed
        if nodes != "(null)"
        for node in hostlist.expand(nodes, gres.GPUS_PER_NODE_MAX * 64)
        for row in parts_on_node(node, one)
    ]


def parts_on_node(node: str, text: str) -> list[dict[str, object]]:
    """Return a row for each kind of part in a GRES text of a node."""
    return [{"node": node, "kind": kind, "amount": n} for kind, n in gres.parts(text).items()]


def _job_gres(found: re.Match[str]) -> list[gres.Gres]:
    return [] if found["job_gres"] == "(null)" else gres.gpu_gres(found["job_gres"])


def on_node(node: str, listed: list[gres.Gres]) -> list[dict[str, object]]:
    """Return a row a GPU where the indices are known, else one row with the number of GPUs."""
    rows: list[dict[str, object]] = []
    counted = [g for g in listed if g.indices is None and g.gpus]
    for one in listed:
        rows += [{"node": node, "slurm_index": i, "gpu_type": one.type} for i in one.indices or ()]
    if counted:
        types = {g.type for g in counted}
        rows.append(
            {
                "node": node,
                "gpus": sum(g.gpus for g in counted),
                "gpu_type": types.pop() if len(types) == 1 else None,
            }
        )
    return rows
