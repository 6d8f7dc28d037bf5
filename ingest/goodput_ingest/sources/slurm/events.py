"""Intervals that Slurm keeps: events of nodes and reservations (sacctmgr, scontrol)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats import delimited, hostlist, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.formats.timestamps import instants, seconds
from goodput_ingest.sources.slurm import repeated_hours
from goodput_ingest.sources.slurm import states as slurm_states
from goodput_ingest.sources.slurm.jobs import records
from goodput_ingest.sources.slurm.nodes import NODE_STATES
from goodput_queries.evidence.batch import Reject

WHOLE_CLUSTER = "*"
RESERVATIONS = raw_tables.columns("reservations", "source")
EVENT_FIELDS = {"Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "Reason", "User"}
RESERVATION_FIELDS = {  # what is asked of sacctmgr: its longer name, of events, too
    **{name: name for name in ("Cluster", "Name", "Flags")},
    "Start": "TimeStart",
    "End": "TimeEnd",
    "NodeNames": "Nodes",
}
# as the header of format=NodeNames has it
OF_RESERVATIONS = {**RESERVATION_FIELDS, "NodeName": "Nodes"}
_NOTHING = {"", "(null)", "N/A", "None"}
_USER = re.compile(r"(.*?)\([0-9]+\)")
_FIELD = re.compile(
    r"(?:^| )(ReservationName|StartTime|EndTime|Duration|Nodes|Flags|Users|Accounts)=(\S*)"
)


def is_events(names: Sequence[str]) -> bool:
    """Say whether a header is that of `sacctmgr show event`."""
    found = {RESERVATION_FIELDS.get(name, name) for name in names}
    return {"NodeName", "TimeStart", "TimeEnd", "State"} <= found


def is_reservations(names: Sequence[str]) -> bool:
    """Say whether a header is that of `sacctmgr show reservation`."""
    found = {RESERVATION_FIELDS.get(name, name) for name in names}
    return {"Name", "TimeStart", "TimeEnd"} <= found and not found & {"State", "JobID"}


def parse_events(text: str, *, cluster: str | None, zone: ZoneInfo | None) -> list[Parsed]:
    """Return `raw.node_states`: nodes down or drained, and node '*' up while the cluster was known.

    A row without a node is a registration of the cluster: from then on the controller watched it.
    """
    rows, rejects = _rows(text, EVENT_FIELDS)
    starts, ends, problems = _interval(rows, zone)
    states: list[dict[str, object]] = []
    for row, start, end, problem in zip(
        rows.iter_rows(named=True), starts, ends, problems, strict=True
    ):
        node, text = row.get("NodeName") or WHOLE_CLUSTER, row.get("State") or ""
        words = {"IDLE"} if node == WHOLE_CLUSTER else slurm_states.words(text)
        if words is None and problem is None:
            problem = f"'{text[:40]}' is no node state"  # noqa: PLW2901 -- the first problem wins
        state = slurm_states.ledger_state(words or set())
        if problem is not None:
            rejects.append(_reject(row, problem))
        elif state is not None:
            user = _USER.fullmatch(row.get("User") or "")
            states.append(
                {
                    "cluster": row.get("Cluster") or cluster,
                    "node": node[:TEXT_MAX_CHARS],
                    "state": state,
                    "state_raw": text or None,
                    "start_at": start,
                    "end_at": end,
                    "reason": (row.get("Reason") or "")[:TEXT_MAX_CHARS] or None,
                    "user_name": user[1] if user else row.get("User") or None,
                }
            )
    return [Parsed("node_states", frame(states, NODE_STATES), rejects)]


def parse_reservation_rows(
    text: str, *, cluster: str | None, zone: ZoneInfo | None, observed_at: datetime | None = None
) -> list[Parsed]:
    """Return `raw.reservations` from sacctmgr, which does not say which nodes unless asked.

    One whose end lies before `observed_at` ended then, even if it was to end later.
    """
    rows, rejects = _rows(text, set(OF_RESERVATIONS.values()), OF_RESERVATIONS)
    starts, ends, problems = _interval(rows, zone)
    reservations: list[dict[str, object]] = []
    for row, start, end, problem in zip(
        rows.iter_rows(named=True), starts, ends, problems, strict=True
    ):
        try:
            fault = problem or ("it has no Name" if not row["Name"] else "")
            nodes = hostlist.expand(row["Nodes"]) if row.get("Nodes") else None
        except hostlist.HostlistError as error:
            fault = str(error)
        if fault:
            rejects.append(_reject(row, fault))
            continue
        reservations.append(
            {
                "cluster": row.get("Cluster") or cluster,
                "name": row["Name"][:TEXT_MAX_CHARS],
                "nodes": nodes,
                "flags": row.get("Flags") or None,
                "start_at": start,
                "end_at": end,
                "is_ended": (end is not None and observed_at is not None and end <= observed_at)
                or None,
            }
        )
    return [Parsed("reservations", frame(reservations, RESERVATIONS), rejects)]


def parse_reservations(text: str, *, cluster: str | None, zone: ZoneInfo | None) -> list[Parsed]:
    """Return `raw.reservations` from `scontrol show reservation`; no node is an empty list."""
    found = list(records(text, "ReservationName="))
    fields = [dict(_FIELD.findall(record.text)) for record in found]
    twice = [
        len(_FIELD.findall(record.text)) != len(f) for record, f in zip(found, fields, strict=True)
    ]
    times = pl.DataFrame(
        {
            "TimeStart": [f.get("StartTime") for f in fields],
            "TimeEnd": [f.get("EndTime") for f in fields],
            "Duration": [f.get("Duration") for f in fields],
        },
        schema=dict.fromkeys(("TimeStart", "TimeEnd", "Duration"), pl.String),
    )
    starts, ends, problems = _interval(times, zone)
    reservations: list[dict[str, object]] = []
    rejects: list[Reject] = []
    for record, field, is_odd, start, end, problem in zip(
        found, fields, twice, starts, ends, problems, strict=True
    ):
        try:
            fault = "a field appears twice" if is_odd else problem or ""
            nodes = hostlist.expand(field.get("Nodes", ""))
        except hostlist.HostlistError as error:
            fault = str(error)
        if fault:
            rejects.append(Reject(record.line, f"slurm: reservation: {fault}.", record.text))
            continue
        owners = [field.get(name, "") for name in ("Accounts", "Users")]
        reservations.append(
            {
                "cluster": cluster,
                "name": field["ReservationName"][:TEXT_MAX_CHARS],
                "nodes": nodes,
                "owner": ",".join(o for o in owners if o not in _NOTHING) or None,
                "flags": None if field.get("Flags", "") in _NOTHING else field["Flags"],
                "start_at": start,
                "end_at": end,
            }
        )
    return [Parsed("reservations", frame(reservations, RESERVATIONS), rejects)]


def _rows(
    text: str, fields: set[str], longer: Mapping[str, str] = RESERVATION_FIELDS
) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the rows of a sacctmgr text under the longer names of the fields."""
    data = text.encode()
    header = delimited.first_header(data)
    names = tuple(longer.get(name, name) for name in header.names)
    return delimited.rows_of(delimited.Block(1, data), replace(header, names=names), fields)


def _interval(
    rows: pl.DataFrame, zone: ZoneInfo | None
) -> tuple[list[datetime | None], list[datetime | None], list[str | None]]:
    """Return starts, ends (null: not over) and what is wrong with each row's times.

    A local time in the hour that comes twice is settled by `Duration`, where rows have it.
    """
    start, start_problem = instants(rows["TimeStart"], zone)
    end, end_problem = instants(rows["TimeEnd"], zone)
    starts, ends, problems = start.to_list(), end.to_list(), list[str | None]()
    settled = {}
    if zone is not None and "Duration" in rows.columns:
        lengths = rows.select(seconds(pl.col("Duration")).alias("s"))["s"]
        settled = repeated_hours.intervals(rows.select("TimeStart", "TimeEnd"), lengths, zone)
    for row, faults in enumerate(zip(start_problem, end_problem, strict=True)):
        starts[row], ends[row] = settled.get(row, (starts[row], ends[row]))
        begin, until = starts[row], ends[row]
        fault = None if row in settled else next((p for p in faults if p is not None), None)
        if fault is not None and repeated_hours.TWICE in fault:
            fault = f"{fault}. {repeated_hours.ASK_AGAIN}"
        if fault is None and begin is None:
            fault = "it has no start"
        if fault is None and until is not None and until < begin:
            fault = "it ends before it starts"
        problems.append(fault)
    return starts, ends, problems


def _reject(row: dict[str, object], fault: str) -> Reject:
    line, *cells = row.values()
    number = line if isinstance(line, int) else None
    return Reject(
        number, f"slurm: the row is rejected: {fault}.", "|".join(str(c or "") for c in cells)
    )
