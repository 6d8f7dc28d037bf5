"""`scontrol show node` and `sinfo -N`: resources of nodes, and their state at the time of the poll.

A state is stored only where that moment is known (`observed_at`), as a row that starts and ends
then: builds decide how long it lasts. sinfo has no header in most captures; its columns are
recognised by what all their values look like, and a text in which that fails is refused.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

from goodput_ingest.formats import gres, hostlist, raw_tables
from goodput_ingest.formats.gres import GPU_INSTANCES, GPUS, slot_rows
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.sources.slurm import states as slurm_states
from goodput_ingest.sources.slurm.jobs import records
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import Reject

MEBIBYTE = 1_048_576
NO_TIME = (
    "Node states need --observed-at: the text of sinfo or scontrol does not say when it was taken."
)
NODES = raw_tables.columns("nodes", "source")
NODE_STATES = raw_tables.columns("node_states", "source")
SINFO_FIELDS = {  # what is asked of sinfo: how it heads the column
    "NodeList": "NODELIST",
    "Partition": "PARTITION",
    "StateComplete": "STATE",
    "Gres": "GRES",
    "CPUsState": "CPUS(A/I/O/T)",
    "Memory": "MEMORY",
    "features_act": "ACTIVE_FEATURES",
    "Reason": "REASON",
    "User": "USER",
}
SINFO_HEADER = {
    "NODELIST": "node",
    "HOSTNAMES": "node",
    "PARTITION": "partition",
    "AVAIL_FEATURES": "features",
    "ACTIVE_FEATURES": "features",
    "STATE": "state",
    "STATECOMPLETE": "state",
    "STATE_COMPLETE": "state",
    "GRES": "gres",
    "CPUS": "cpus",
    "CPUS(A/I/O/T)": "cpus",
    "MEMORY": "memory",
    "REASON": "reason",
    "TIMESTAMP": "since",
    "USER": "user",
}
_NO_TEXT = {"", "none", "None", "(null)", "N/A", "n/a", "Unknown", "unknown"}
_SINCE = re.compile(r"Unknown|None|N/A|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9:]{4,5})?")
_GRES = re.compile(r"\(null\)|N/A|[A-Za-z]\w*:[^|\s]*")
_CPUS = re.compile(r"(?:[0-9]+/){3}([0-9]+)|([0-9]+)\+?")
_REASON = re.compile(r"(.*?)\s*\[([^\[\]@]*)@[^\[\]@]*\]\s*")
_FIELD = {
    name: re.compile(rf"(?:^| ){name}=(\S*)")
    for name in (
        *("NodeName", "Gres", "GresUsed", "CPUTot", "RealMemory", "State", "Partitions"),
        "ActiveFeatures",
    )
}


@dataclass
class Node:
    """One node as a listing has it; None where the listing does not say."""

    name: str
    line: int
    cpus: int | None = None
    memory_mib: int | None = None
    gres: str | None = None
    gres_used: str | None = None
    partitions: list[str] | None = None
    features: list[str] | None = None
    states: list[str] = field(default_factory=list)
    reason: str | None = None
    user: str | None = None


def parse_nodes(text: str, *, cluster: str | None, observed_at: datetime | None) -> list[Parsed]:
    """Return nodes, GPU slots, MIG instances and states from `scontrol show node`."""
    nodes, rejects = [], []
    for record in records(text, "NodeName="):
        node = _node(record.text, record.line)
        if node is None:
            reason = "slurm: node rejected: State does not appear exactly once."
            rejects.append(Reject(record.line, reason, record.text))
        else:
            nodes.append(node)
    return tables(nodes, rejects, cluster, observed_at)


def _node(text: str, line: int) -> Node | None:
    """Return the node of a record; None where free text (a reason, a comment) imitates fields."""
    before_reason, _, reason = text.partition(" Reason=")
    found = {name: pattern.findall(before_reason) for name, pattern in _FIELD.items()}
    if len(found["State"]) != 1 or len(found["NodeName"]) != 1 or not found["NodeName"][0]:
        return None
    signed = _REASON.fullmatch(reason)
    cpus, memory = (next(iter(found[name]), "") for name in ("CPUTot", "RealMemory"))
    partitions = next(iter(found["Partitions"]), "")
    return Node(
        name=found["NodeName"][0],
        line=line,
        cpus=integer(cpus),
        memory_mib=integer(memory),
        gres=next(iter(found["Gres"]), None),
        gres_used=next(iter(found["GresUsed"]), None),
        partitions=_listed(partitions),
        features=next((_listed(text) for text in found["ActiveFeatures"]), None),
        states=found["State"],
        reason=(signed[1] if signed else reason)[:TEXT_MAX_CHARS] or None,
        user=signed[2] if signed else None,
    )


def _listed(text: str) -> list[str]:
    return [] if text in _NO_TEXT else text.split(",")


def integer(text: str) -> int | None:
    """Return a number of CPUs or MiB; None where there is none, or more than a node can have."""
    match = _CPUS.fullmatch(text)
    digits = "" if match is None else match[1] or match[2]
    return int(digits) if 0 < len(digits) < 10 else None


def tables(
    nodes: list[Node], rejects: list[Reject], cluster: str | None, observed_at: datetime | None
) -> list[Parsed]:
    """Return the rows of these nodes; their states only where the moment is known."""
    listed: list[dict[str, object]] = []
    states: list[dict[str, object]] = []
    note = ""
    gpus: list[dict[str, object]] = []
    instances: list[dict[str, object]] = []
    for node in nodes:
        key = {"cluster": cluster, "node": node.name}
        try:
            found = [] if (node.gres or "") in _NO_TEXT else gres.gpu_gres(node.gres or "")
        except ValueError as error:
            rejects.append(Reject(node.line, f"slurm: node {node.name}: {error}.", node.gres or ""))
            continue
        try:
            used = [] if (node.gres_used or "") in _NO_TEXT else gres.gpu_gres(node.gres_used or "")
        except ValueError as error:
            reason = f"slurm: GPUs in use on node {node.name}: {error}."
            rejects.append(Reject(node.line, reason, node.gres_used or ""))
            used = []
        if node.gres is not None or node.partitions is not None or node.cpus is not None:
            listed.append(
                key | _described(node, found) | _used(used) | {"observed_at": observed_at}
            )
        for slot in gres.slots(found):
            gpu, parts = slot_rows(node.name, slot)
            gpus.append({"cluster": cluster} | gpu)
            instances += [{"cluster": cluster} | part for part in parts]
        unknown = next((t for t in node.states if slurm_states.words(t) is None), None)
        if unknown is not None:
            reason = (
                f"slurm: node {node.name} is in the state '{unknown[:60]}', which is not known."
            )
            rejects.append(Reject(node.line, reason))
            continue
        state = _state(node)
        if state is not None and observed_at is None:
            note = NO_TIME
        elif state is not None:
            at = {"start_at": observed_at, "end_at": observed_at}
            states.append(key | state | at)
    return [
        Parsed("nodes", frame(listed, NODES), rejects),
        Parsed("gpus", frame(gpus, GPUS)),
        Parsed("gpu_instances", frame(instances, GPU_INSTANCES)),
        Parsed("node_states", frame(states, NODE_STATES), note=note),
    ]


def _used(used: list[gres.Gres]) -> dict[str, object]:
    """Return number and indices of the GPUs in use; the indices only where all are listed."""
    if not used:
        return {"gpus_used": None, "used_indices": None}
    indices = [i for one in used for i in one.indices or ()]
    gpus = sum(one.gpus for one in used)
    return {"gpus_used": gpus, "used_indices": indices if len(indices) == gpus else None}


def _described(node: Node, found: list[gres.Gres]) -> dict[str, object]:
    partitions = node.partitions
    return {
        "cpus": node.cpus,
        "memory_bytes": None if node.memory_mib is None else node.memory_mib * MEBIBYTE,
        "gpus": None if node.gres is None else sum(g.gpus for g in found),
        "gres": None if (node.gres or "") in _NO_TEXT else node.gres,
        "partitions": None if partitions is None else [p.removesuffix("*") for p in partitions],
        "features": None if node.features is None else sorted(set(node.features)),
    }


def _state(node: Node) -> dict[str, object] | None:
    """Return the node's state: the words of all its state columns together."""
    found = set().union(*(slurm_states.words(text) or set() for text in node.states))
    state = slurm_states.ledger_state(found)
    if state is None:
        return None
    raw, reason = node.states[0], node.reason
    return {"state": state, "state_raw": raw, "reason": reason, "user_name": node.user}


def parse_sinfo(text: str, *, cluster: str | None, observed_at: datetime | None) -> list[Parsed]:
    """Return nodes, GPU slots, MIG instances and states from `sinfo -N` with `|` between fields.

    A node has a row for each of its partitions; they are gathered. Raises IngestError where the
    columns are not recognised, or where the text has only states and `observed_at` is unknown.
    """
    rows = [(n, line.split("|")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    columns = sinfo_header([cell.strip() for cell in rows[0][1]]) if rows else None
    if columns is not None:
        rows = rows[1:]
    else:
        columns = sinfo_columns([cells for _, cells in rows])
    if columns is None:
        raise IngestError(
            "slurm: the columns of this sinfo text cannot be recognised. Record it with a header: "
            "sinfo -N -o '%N|%P|%T|%G|%C|%m|%E|%H|%u'."
        )
    named = set(columns)
    if observed_at is None and not named & {"gres", "partition", "cpus"}:
        raise IngestError(
            "slurm: this sinfo text has states but no time of recording. "
            "Give it with --observed-at."
        )
    nodes: dict[str, Node] = {}
    rejects: list[Reject] = []
    for line, cells in rows:
        if problem := _sinfo_row(nodes, columns, line, [cell.strip() for cell in cells]):
            rejects.append(Reject(line, f"slurm: the row {problem}.", "|".join(cells)))
    return tables(list(nodes.values()), rejects, cluster, observed_at)


def sinfo_header(cells: list[str]) -> list[str] | None:
    """Return what each column is ('' for one that is not read), None where this is no header."""
    if cells[0] not in {"NODELIST", "HOSTNAMES"} or "STATE" not in cells:
        return None
    return [SINFO_HEADER.get(name, "") for name in cells]


def sinfo_columns(rows: list[list[str]]) -> list[str] | None:
    """Return what each column is by its values; None without a state or any other column."""
    width = len(rows[0]) if rows else 0
    rows = [row for row in rows if len(row) == width]
    if width < 3 or any(not row[0].strip() or " " in row[0].strip() for row in rows):
        return None
    values = [[row[i].strip() for row in rows] for i in range(width)]
    columns = ["node", *(_kind(column) for column in values[1:])]
    if "state" not in columns or not {"since", "gres"} & set(columns):
        return None
    if "since" in columns:
        since = columns.index("since")
        if columns[since - 1] == "":
            columns[since - 1] = "reason"
        if since + 1 < width and columns[since + 1] == "":
            columns[since + 1] = "user"
    if "cpus" in columns and columns[1] == "":
        columns[1] = "partition"
    if "cpus" in columns:
        after = columns.index("cpus") + 1
        if after < width and columns[after] == "" and all(v.isdigit() for v in values[after]):
            columns[after] = "memory"
    return [c if c == "state" or columns.index(c) == i else "" for i, c in enumerate(columns)]


def _kind(values: list[str]) -> str:
    """Return what all values of a column are: a state, a time, GRES, CPU counts; '' otherwise."""
    if all(slurm_states.words(value) for value in values):
        return "state"
    if all(_SINCE.fullmatch(value) for value in values):
        return "since"
    has_gpu = any(value.startswith("gpu:") for value in values)
    if has_gpu and all(_GRES.fullmatch(v) for v in values) and not any("IDX:" in v for v in values):
        return "gres"
    return "cpus" if all(v.count("/") == 3 and _CPUS.fullmatch(v) for v in values) else ""


def _sinfo_row(nodes: dict[str, Node], columns: list[str], line: int, cells: list[str]) -> str:
    """Add a row to its nodes; return what is wrong with it, '' for nothing."""
    if len(cells) != len(columns):
        return f"has {len(cells)} fields, expected {len(columns)}"
    states = [cell for cell, column in zip(cells, columns, strict=True) if column == "state"]
    cell = {column: text for column, text in zip(columns, cells, strict=True) if column}
    try:
        names = hostlist.expand(cell["node"])
    except hostlist.HostlistError as error:
        return f"is rejected: {error}"
    for name in names:
        node = nodes.setdefault(name, Node(name, line))
        node.states = states
        node.gres = cell.get("gres")
        node.cpus = integer(cell.get("cpus", ""))
        node.memory_mib = integer(cell.get("memory", ""))
        node.features = _listed(cell["features"]) if "features" in cell else None
        node.reason = _known(cell.get("reason"))
        node.user = _known(cell.get("user"))
        if "partition" in cell:
            node.partitions = [*(node.partitions or []), cell["partition"]]
    return ""


def _known(text: str | None) -> str | None:
    return None if text is None or text in _NO_TEXT else text[:TEXT_MAX_CHARS]
