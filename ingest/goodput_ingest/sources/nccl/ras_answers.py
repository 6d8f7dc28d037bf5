"""One answer of NCCL's RAS thread (`VERBOSE STATUS`), JSON or text, as counts and places.

RAS sorts the ranks of a communicator by how many operations of a kind each has launched; so does
this. The JSON of NCCL 2.28 lacks a comma in each missing rank; it is put back. The text names the
ranks of small groups only; of the others it says how many there are.
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError

INT32_MAX = 2**31 - 1
TEXT_MAX_CHARS = 255
LACKS_COMMA = re.compile(r'("nvml_dev": -?\d{1,9})(\s+"status")')
COMM_ID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")

SECTION = re.compile(r"#\d{1,9}-\d{1,9} \(([0-9a-f]{1,16})\) (MISMATCH|INCOMPLETE|ERROR)")
DIFFERENT = re.compile(r" {2}Communicator ranks have different (\w{1,40}) operation counts")
PLACE = (  # the GPU is CUDA's number in the process, not the node's
    r"(?: -- GPU \d{1,4}\b.{0,60}? managed by process (?P<pid>\d{1,19})"
    r" on node (?P<node>\S{1,255}))?"
)
MANY_LAUNCHED = re.compile(r" {2}(\d{1,9}) ranks have launched up to operation (\d{1,19})")
ONE_LAUNCHED = re.compile(
    rf" {{2}}Rank (?P<rank>\d{{1,9}}) has launched up to operation (?P<value>\d{{1,19}}){PLACE}"
)
MANY_STATES = re.compile(r" {2}(\d{1,9}) ranks have status ([A-Z]{1,20})")
ONE_STATE = re.compile(
    rf" {{2}}Rank (?P<rank>\d{{1,9}}) has status (?P<value>[A-Z]{{1,20}}){PLACE}"
)
MISSING = re.compile(r" {2}Missing communicator data from (\d{1,9}) ranks?")
RANK = re.compile(rf" {{2}}Rank (?P<rank>\d{{1,9}}){PLACE}")


@dataclass
class Group:
    """Ranks with one count or in one state: how many, and which where RAS names them."""

    rank_count: int = 0
    ranks: list[int] | None = None

    def add(self, rank: int) -> None:
        """Add a rank that is known by its number."""
        self.ranks = [*(self.ranks or ()), rank]
        self.rank_count += 1


@dataclass(frozen=True)
class Place:
    """Where a rank runs: address of the host, process, NVML's number of the GPU."""

    rank: int
    node: str
    pid: int
    gpu_index: int | None


@dataclass
class Communicator:
    """One communicator in an answer; states: of a text, which has its size by them."""

    comm_id: str
    size: int | None = None
    launched: dict[tuple[str, int], Group] = field(default_factory=lambda: defaultdict(Group))
    states: dict[str, Group] = field(default_factory=lambda: defaultdict(Group))
    places: list[Place] = field(default_factory=list)


def of_json(text: str) -> dict[str, Any]:
    """Return the object of an answer in JSON, with the commas that NCCL 2.28 forgets."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise FieldError("the JSON is nested too deeply") from None
    except ValueError:
        return json_lines.record(LACKS_COMMA.sub(r"\1,\2", text))
    if not isinstance(value, dict):
        raise FieldError(f"the answer is {json_lines.kind(value)}, expected an object")
    return value


def communicators(answer: dict[str, Any]) -> list[Communicator]:
    """Return what a JSON answer says; raises FieldError where it is not as RAS writes it."""
    return [_communicator(fields) for fields in _objects(answer, "communicators")]


def _communicator(fields: dict[str, Any]) -> Communicator:
    size = json_lines.whole(fields, "size", 0, INT32_MAX)
    found = Communicator(_comm_id(json_lines.text(fields, "hash") or ""), size)
    for rank_fields in _objects(fields, "ranks"):
        place = _place(rank_fields)
        found.places.append(place)
        _object(rank_fields, "status")  # which an answer has, if any, as an object
        counts = _object(rank_fields, "collective_counts")
        for operation in counts:
            launched = json_lines.whole(counts, operation, 0)
            if launched is not None:
                found.launched[json_lines.printable(operation, 40), launched].add(place.rank)
    found.places += map(_place, _objects(fields, "missing_ranks"))
    used = {operation for operation, launched in found.launched if launched}
    found.launched = {key: group for key, group in found.launched.items() if key[0] in used}
    return found


def _place(fields: dict[str, Any]) -> Place:
    rank = json_lines.whole(fields, "rank", 0, INT32_MAX)
    node, pid = json_lines.text(fields, "host", TEXT_MAX_CHARS), json_lines.whole(fields, "pid", 0)
    if rank is None or node is None or pid is None:
        raise FieldError("a rank lacks rank, host or pid")
    return Place(rank, node, pid, json_lines.whole(fields, "nvml_dev", 0, INT32_MAX))


def _objects(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise FieldError(f"{name} is not a list of objects")
    return value


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise FieldError(f"{name} is {json_lines.kind(value)}, expected an object")
    return value


def _comm_id(text: str) -> str:
    """Return a communicator's hash as the Inspector writes it: 0x and no leading zeros."""
    match = COMM_ID.fullmatch(text)
    if match is None:
        raise FieldError("a communicator has no hash")
    return f"0x{int(match[1], 16):x}"


def complaints(lines: list[str]) -> list[Communicator]:
    """Return what a text answer complains of; communicators without a complaint are not named."""
    found: dict[str, Communicator] = {}
    section = operation = ""
    at: Communicator | None = None
    group = Group()
    for line in lines:
        if match := SECTION.fullmatch(line.rstrip()):
            comm_id = _comm_id(match[1])
            at = found.setdefault(comm_id, Communicator(comm_id))
            section, operation, group = match[2], "", Group()
        elif at is None or not line.startswith("  "):
            at = at if line.startswith("  ") or not line.strip() else None
        elif match := DIFFERENT.match(line):
            operation = match[1]
        elif section == "MISMATCH":
            group = _mismatch(line, at, operation, group)
        elif section == "INCOMPLETE":
            group = _incomplete(line, at, group)
    for communicator in found.values():
        sizes = [sum(g.rank_count for g in communicator.states.values())]
        by_operation: dict[str, int] = defaultdict(int)
        for (name, _), counted in communicator.launched.items():
            by_operation[name] += counted.rank_count
        communicator.size = max([*sizes, *by_operation.values()]) or None
    return list(found.values())


def _mismatch(line: str, at: Communicator, operation: str, group: Group) -> Group:
    """Read a line of a MISMATCH; return the group that lines naming single ranks belong to."""
    if match := MANY_LAUNCHED.match(line) or MANY_STATES.match(line):
        group = _group(at, operation, match[2])
        group.rank_count = int(match[1])
    elif match := ONE_LAUNCHED.match(line) or ONE_STATE.match(line):
        _group(at, operation, match["value"]).add(int(match["rank"]))
        _add_place(at, match)
        group = Group()
    elif match := RANK.match(line):
        group.ranks = [*(group.ranks or ()), int(match["rank"])]
        _add_place(at, match)
    return group


def _group(at: Communicator, operation: str, value: str) -> Group:
    """Return the ranks with a count (a number) or in a state (a word)."""
    if value.isdecimal():
        return at.launched[operation, min(int(value), json_lines.INTEGER_MAX)]
    return at.states[value]


def _incomplete(line: str, at: Communicator, group: Group) -> Group:
    if match := MISSING.match(line):
        group = at.states["SILENT"]
        group.rank_count = int(match[1])
    elif match := RANK.match(line):
        group.ranks = [*(group.ranks or ()), int(match["rank"])]
        _add_place(at, match)
    return group


def _add_place(at: Communicator, match: re.Match[str]) -> None:
    """Remember where a named rank runs, unless RAS did not find its process."""
    if match["pid"] is not None:
        at.places.append(Place(int(match["rank"]), match["node"], int(match["pid"]), None))
