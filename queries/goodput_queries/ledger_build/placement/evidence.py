"""Inputs of placement: slots, job runs, the GPUs that sources report for them, node outages."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

import duckdb

from goodput_queries.catalog import models
from goodput_queries.ledger_build import materialise

FOREVER_MS = 2**62
BY_ID = "hpc_job"  # the job's id on the series of its GPUs
BY_EVENTS = "job_event"  # inferred from job events, on nodes without a scheduler


class Phase(IntEnum):
    """The order of placement: what is certain first."""

    NAMED = 1  # GPUs that a source names, and whole nodes
    ASSUMED = 2  # a number of GPUs on a node
    SPREAD = 3  # GPUs on several nodes, how many on each is not known


class Claim(NamedTuple):
    """A job run's claim on a slot for a time; `end_ms` is FOREVER_MS while it runs.

    run_start_ms: when the job run started, which is its position within a phase.
    """

    job_run_key: str
    start_ms: int
    end_ms: int
    method: str
    phase: Phase
    run_start_ms: int


@dataclass
class Slot:
    """A GPU or MIG instance of a node that the scheduler can allocate, with the claims on it.

    `claims` is sorted by start; `_starts_ms` holds their starts and `_latest_ends_ms` the running
    maximum of their ends, so that the claims within an interval are found without a scan of all.
    """

    gpu_uuid: str
    gpu_instance: str
    index: int
    gpu_type: str | None
    from_ms: int = 0
    to_ms: int = FOREVER_MS
    claims: list[Claim] = field(default_factory=list)
    _starts_ms: list[int] = field(default_factory=list)
    _latest_ends_ms: list[int] = field(default_factory=list)

    @property
    def name(self) -> tuple[str, str]:
        """Return the key by which holds refer to the slot."""
        return self.gpu_uuid, self.gpu_instance

    def add(self, claim: Claim) -> None:
        """Add a claim."""
        latest = self._latest_ends_ms
        place = bisect.bisect_right(self._starts_ms, claim.start_ms)
        self.claims.insert(place, claim)
        self._starts_ms.insert(place, claim.start_ms)
        latest.insert(place, max(claim.end_ms, latest[place - 1] if place else claim.end_ms))
        for later in range(place + 1, len(latest)):
            if latest[later] >= claim.end_ms:
                break  # the maximum of all that follow is no less
            latest[later] = claim.end_ms

    def is_there(self, start_ms: int, end_ms: int) -> bool:
        """Say whether the slot is in the inventory for all of `[start_ms, end_ms)`."""
        return self.from_ms <= start_ms and (end_ms == FOREVER_MS or self.to_ms >= end_ms)

    def is_free(self, start_ms: int, end_ms: int) -> bool:
        """Say whether nothing claims the slot within `[start_ms, end_ms)`."""
        return self.is_there(start_ms, end_ms) and not self.claims_within(start_ms, end_ms)

    def claims_within(self, start_ms: int, end_ms: int) -> list[Claim]:
        """Return the claims that overlap `[start_ms, end_ms)`, the latest start first."""
        found: list[Claim] = []
        place = bisect.bisect_left(self._starts_ms, end_ms)
        while place and self._latest_ends_ms[place - 1] > start_ms:
            place -= 1
            if self.claims[place].end_ms > start_ms:
                found.append(self.claims[place])
        return found

    def free_until_ms(self, moment_ms: int) -> int:
        """Return up to when the slot is free from a moment on; the moment where it is taken."""
        if self.claims_within(moment_ms, moment_ms + 1):
            return moment_ms
        place = bisect.bisect_right(self._starts_ms, moment_ms)
        return self._starts_ms[place] if place < len(self.claims) else FOREVER_MS


@dataclass(frozen=True)
class JobRun:
    """The columns of a scheduler record that placement uses."""

    key: str
    cluster: str
    job: tuple[str, int]  # raw id and submit: how explicit holds name it
    start_ms: int
    end_ms: int
    nodes: tuple[str, ...]
    gpus: int
    gpu_type: str | None
    run_start_ms: int  # of the whole job run, where this is a part of it

    def claim(self, start_ms: int, end_ms: int, method: str, phase: Phase) -> Claim:
        """Return a claim of the run for a time."""
        return Claim(self.key, start_ms, end_ms, method, phase, self.run_start_ms)

    def part(self, hold: ReportedHold) -> JobRun:
        """Return the run cut to the time of `hold`, where that has a start or an end of its own."""
        if hold.start_ms is None and hold.end_ms is None:
            return self
        return replace(
            self,
            start_ms=max(self.start_ms, hold.start_ms or self.start_ms),
            end_ms=min(self.end_ms, hold.end_ms or self.end_ms),
        )


class ReportedHold(NamedTuple):
    """A job run's GPUs on a node as a source reports them: one GPU by name, or a number."""

    node: str
    slurm_index: int | None
    gpu_uuid: str | None
    gpu_instance: str | None
    gpu_type: str | None
    gpus: int | None
    method: str
    start_ms: int | None
    end_ms: int | None

    @property
    def is_named(self) -> bool:
        """Say whether it is one GPU rather than a number of them."""
        return self.slurm_index is not None or bool(self.gpu_uuid)


def _rows(cursor: duckdb.DuckDBPyConnection, sql: str) -> Iterable[tuple[Any, ...]]:
    return cursor.execute(sql).fetchall()


Node = tuple[str, str]  # cluster, node
Slots = dict[Node, list[Slot]]


def slots_by_node(cursor: duckdb.DuckDBPyConnection) -> Slots:
    """Return the slots of each (cluster, node) by index, MIG instances in place of their GPU.

    Only of nodes of the job runs in temp.job_runs_to_place, or in temp.dirty_nodes.
    """
    slots: Slots = defaultdict(list)
    for cluster, node, uuid, instance, index, kind, from_ms, to_ms in _rows(
        cursor,
        """from intermediate.int_slots
        semi join (
            select cluster, unnest(nodes) as node from temp.job_runs_to_place
            union
            select cluster, node from temp.dirty_nodes
        ) using (cluster, node)
        order by all""",
    ):
        held = slots[cluster, node]
        place = index if index is not None else len(held)
        held.append(
            Slot(uuid, instance, place, kind, from_ms, FOREVER_MS if to_ms is None else to_ms)
        )
    for held in slots.values():
        held.sort(key=lambda slot: (slot.index, *slot.name))
    return slots


def reported_holds_by_job(
    cursor: duckdb.DuckDBPyConnection,
) -> dict[tuple[str, str, int], list[ReportedHold]]:
    """Return the reported holds of each job (cluster, raw id, submit in epoch ms)."""
    found: dict[tuple[str, str, int], list[ReportedHold]] = defaultdict(list)
    reported = models.of_layer("intermediate")["int_reported_holds"]
    if not materialise.has_rows(cursor, reported.sources):
        return found
    for cluster, job, submit_ms, *rest in _rows(
        cursor,
        """select cluster, job_id_raw, submit_ms, node, slurm_index, gpu_uuid, gpu_instance,
            gpu_type, gpus, method, start_ms, end_ms
        from intermediate.int_reported_holds
        semi join temp.job_runs_to_place using (cluster, job_id_raw, submit_ms)
        order by all""",
    ):
        found[cluster, job, submit_ms].append(ReportedHold(*rest))
    # a job listed while it ran and afterwards has named GPUs and a bare number: names win
    for key, rows in found.items():
        named = {(row.node, row.start_ms) for row in rows if row.is_named}
        kept = [
            row
            for row in rows
            if row.is_named or row.method == BY_EVENTS or (row.node, row.start_ms) not in named
        ]
        found[key] = _of_the_fullest(kept)
    return found


def _of_the_fullest(rows: list[ReportedHold]) -> list[ReportedHold]:
    """Return the rows of one method a node: the one that names most GPUs, of equals job labels."""
    names = Counter((row.node, row.method) for row in rows if row.is_named)
    best: dict[str, tuple[int, bool, str]] = {}
    for (node, method), count in names.items():
        best[node] = max(best.get(node, (0, False, "")), (count, method == BY_ID, method))
    return [row for row in rows if not row.is_named or row.method == best[row.node][2]]


def down_moments(cursor: duckdb.DuckDBPyConnection) -> dict[Node, list[int]]:
    """Return when each node went down: holds without an end stop there at the latest."""
    downs: dict[Node, list[int]] = defaultdict(list)
    for cluster, node, start_ms in _rows(
        cursor,
        "select cluster, node, start_ms from staging.stg_node_states "
        "where state = 'down' order by start_ms",
    ):
        downs[cluster, node].append(start_ms)
    return downs


def draft_job_runs(cursor: duckdb.DuckDBPyConnection, where: str = "true") -> int:
    """Write the job runs that hold GPUs to temp.job_runs_to_place; return how many."""
    rows = cursor.execute(
        f"""create or replace temp table job_runs_to_place as
        select job_run_key, cluster, job_id_raw, submit_ms, start_ms, end_ms, nodes, gpus,
            lower(gpu_type) as gpu_type
        from intermediate.int_job_runs
        where start_ms is not null and gpus > 0 and (end_ms is null or end_ms > start_ms)
            and len(nodes) > 0 and {where}
            -- parts of GPUs that no GPU has room for are beside the ledger
            and job_run_key not in (
                select job_run_key from intermediate.int_parts_of_gpus where gpu_uuid is null
            )
            -- so are shares of GPUs that nobody lists: how large they are is not known
            and job_run_key not in (
                select job_run_key
                from (from intermediate.int_job_runs where gpu_type = 'shared') as runs
                where not exists (
                    from intermediate.int_slots as slots
                    where slots.cluster = runs.cluster and list_contains(runs.nodes, slots.node)
                )
            )"""
    ).fetchall()
    return int(rows[0][0])


def job_runs_to_place(cursor: duckdb.DuckDBPyConnection, where: str = "true") -> list[JobRun]:
    """Return the job runs that hold GPUs, by start; keep them as temp.job_runs_to_place too."""
    draft_job_runs(cursor, where)
    return [
        JobRun(
            key, cluster, (raw_id, submit_ms), start, FOREVER_MS if end is None else end,
            tuple(nodes), gpus, kind, start,
        )
        for key, cluster, raw_id, submit_ms, start, end, nodes, gpus, kind in _rows(
            cursor, "from temp.job_runs_to_place order by start_ms, submit_ms, job_run_key"
        )
    ]  # fmt: skip
