"""Placement: assigns each job run to GPUs, by name where a source reports them, else to slots.

Accounting reports nodes and a number of GPUs, rarely which GPUs. GPUs that a source names are
used; a hold of all GPUs of a node is exact; placement puts the rest on the lowest slots that are
free for the whole job run. Sums over the cluster are exact in any case.
Where two job runs claim one GPU at one time the later start gets it, and the overlap is recorded
as a conflict.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import duckdb
import polars as pl

from goodput_queries.ledger_build.placement.evidence import (
    BY_EVENTS,
    FOREVER_MS,
    Claim,
    JobRun,
    Node,
    Phase,
    ReportedHold,
    Slot,
    Slots,
    down_moments,
    job_runs_to_place,
    reported_holds_by_job,
    slots_by_node,
)

HOLDS_SCHEMA = {
    "cluster": pl.String,
    "job_run_key": pl.String,
    "node": pl.String,
    "gpu_uuid": pl.String,
    "gpu_instance": pl.String,
    "slurm_index": pl.Int32,
    "start_ms": pl.Int64,
    "end_ms": pl.Int64,
    "method": pl.String,
}
OF_A_SLOT = ("node", "gpu_uuid", "gpu_instance", "slurm_index")
CLAIMS_SCHEMA = HOLDS_SCHEMA | {"phase": pl.Int8, "run_start_ms": pl.Int64}
CONFLICTS_SCHEMA = {
    "cluster": pl.String,
    "node": pl.String,
    "gpu_uuid": pl.String,
    "gpu_instance": pl.String,
    "job_run_key": pl.String,
    "kept_by": pl.String,
    "start_ms": pl.Int64,
    "end_ms": pl.Int64,
}


class Placed(NamedTuple):
    """What placement gives: `int_claims`, and what follows from it."""

    claims: pl.DataFrame
    holds: pl.DataFrame
    conflicts: pl.DataFrame


def place(
    cursor: duckdb.DuckDBPyConnection, where: str = "true", nodes: Container[Node] | None = None
) -> Placed:
    """Place job runs in sequence.

    where: of which job runs; nodes: on which nodes, None: on all of theirs.
    """
    cursor.execute(
        "create or replace temp table dirty_nodes (cluster varchar, node varchar, since_ms bigint)"
    )
    job_runs = job_runs_to_place(cursor, where)
    slots = slots_by_node(cursor)
    reported = reported_holds_by_job(cursor)
    is_placed = lambda run, node: nodes is None or (run.cluster, node) in nodes  # noqa: E731
    claim(job_runs, slots, reported, is_placed, lambda _: None)
    return placed(slots, down_moments(cursor))


def claim(
    job_runs: Iterable[JobRun],
    slots: Slots,
    explicit: Mapping[tuple[str, str, int], list[ReportedHold]],
    is_dirty: Callable[[JobRun, str], bool],
    restore: Callable[[Phase], None],
) -> None:
    """Put claims of job runs on slots, phase by phase, in each by start.

    is_dirty: says whether a run is placed on a node, or keeps the claims that it has there.
    restore: adds the claims of a phase that are kept.
    """
    inventory = {node: len(held) for node, held in slots.items()}
    remaining: list[tuple[JobRun, str, int, str | None]] = []
    uncertain: list[JobRun] = []
    restore(Phase.NAMED)
    for run in job_runs:
        known = explicit.get((run.cluster, *run.job), [])
        numbers = _gpus_per_node(slots, run, known)
        if numbers is None:
            uncertain.append(run)
        else:
            numbers = {node: count for node, count in numbers.items() if is_dirty(run, node)}
            remaining += _claim_named(slots, run, known, numbers)
    restore(Phase.ASSUMED)
    for run, node, count, kind in remaining:
        is_known = (run.cluster, node) in inventory
        _claim_assumed(slots, run, node, count, kind, Phase.ASSUMED, is_known=is_known)
    restore(Phase.SPREAD)
    # the number of GPUs on each node of these is unknown: they get what the others leave free
    for run in uncertain:
        for node, count in _spread(slots, run, inventory).items():
            is_known = (run.cluster, node) in inventory
            _claim_assumed(slots, run, node, count, run.gpu_type, Phase.SPREAD, is_known=is_known)


def _gpus_per_node(slots: Slots, run: JobRun, known: list[ReportedHold]) -> dict[str, int] | None:
    """Return how many GPUs the run holds on each node; None where that is not certain."""
    numbers: dict[str, int] = defaultdict(int)
    for row in known:
        numbers[row.node] += row.gpus or 1
    # parts with a start of their own follow one another, so that they may add up to more
    if sum(numbers.values()) == run.gpus or any(row.start_ms is not None for row in known):
        return dict(numbers)
    if len(run.nodes) == 1:
        return {run.nodes[0]: run.gpus}
    sizes = {node: len(slots.get((run.cluster, node), ())) for node in run.nodes}
    return sizes if sum(sizes.values()) == run.gpus else None


def _claim_named(
    slots: Slots, run: JobRun, known: list[ReportedHold], numbers: dict[str, int]
) -> list[tuple[JobRun, str, int, str | None]]:
    """Claim the GPUs that a source names and whole nodes; return the GPUs still to place."""
    left: list[tuple[JobRun, str, int, str | None]] = []
    by_node: dict[str, list[ReportedHold]] = defaultdict(list)
    for row in known:
        by_node[row.node].append(row)
    for node, count in numbers.items():
        held = slots[run.cluster, node]
        rows = by_node[node]
        parts = [row for row in rows if row.start_ms is not None and not row.is_named]
        claimed = sum(row.gpus or 1 for row in parts)
        left += [(run.part(row), node, row.gpus or 1, row.gpu_type) for row in parts]
        for row in rows:
            if claimed < count:
                claimed += _claim_one(held, run, row)
        if claimed >= count > 0:
            continue
        there = [slot for slot in held if slot.is_there(run.start_ms, run.end_ms)]
        if claimed == 0 and count == len(there):
            exact = run.claim(run.start_ms, run.end_ms, "exact", Phase.NAMED)
            for slot in there:
                slot.add(exact)
        elif claimed < count:
            kind = next((row.gpu_type for row in rows if row.gpu_type), run.gpu_type)
            left.append((run, node, count - claimed, kind))
    return left


def _claim_one(held: list[Slot], run: JobRun, row: ReportedHold) -> bool:
    """Claim the slot that a row of int_reported_holds names; False where it names none."""
    if not row.is_named:
        return False
    part = run.part(row)
    fitting = [slot for slot in held if _is_meant(slot, row)]
    within = [slot.claims_within(part.start_ms, part.end_ms) for slot in fitting]
    if any(claim.job_run_key == run.key for claims in within for claim in claims):
        return False  # two sources name the same GPU
    if fitting:  # of a GPU in shares that one is meant which nobody has
        free = (
            slot
            for slot, claims in zip(fitting, within, strict=True)
            if not claims and slot.is_there(part.start_ms, part.end_ms)
        )
        slot = next(free, fitting[0])
    else:
        named = _named_by_job(held, run, row)
        if named is None:
            return False
        slot = named
        held.append(slot)
    slot.add(run.claim(part.start_ms, part.end_ms, row.method, Phase.NAMED))
    return True


def _named_by_job(held: list[Slot], run: JobRun, row: ReportedHold) -> Slot | None:
    """Return a new slot for a GPU that only this row reports; None where the row names none."""
    if row.slurm_index is not None:
        name = f"{run.cluster}/{row.node}#{row.slurm_index}"
        return Slot(name, "", row.slurm_index, run.gpu_type)
    if row.method == BY_EVENTS and row.gpu_uuid is not None:
        index = max((s.index for s in held), default=-1) + 1
        return Slot(row.gpu_uuid, "", index, run.gpu_type)
    return None


def _is_meant(slot: Slot, row: ReportedHold) -> bool:
    if row.gpu_uuid is None:
        return slot.index == row.slurm_index
    instance, *_ = slot.gpu_instance.split("/share.")
    meant = (None, "", slot.gpu_instance, instance)
    return slot.gpu_uuid == row.gpu_uuid and row.gpu_instance in meant


def _spread(slots: Slots, run: JobRun, inventory: Mapping[Node, int]) -> dict[str, int]:
    """Return a number of GPUs for each node: evenly if that fits, else filling what is free.

    Nodes without GPUs in the inventory are skipped where the other nodes have enough; otherwise
    the inventory is incomplete, and they are assumed to have as many GPUs as the run needs.
    """
    known = [n for n in run.nodes if (run.cluster, n) in inventory]
    has_enough = sum(inventory[run.cluster, n] for n in known) >= run.gpus > 0
    nodes = known if has_enough else list(run.nodes)
    room = dict.fromkeys(nodes, run.gpus)
    for node in known:
        free = sum(s.is_free(run.start_ms, run.end_ms) for s in slots[run.cluster, node])
        room[node] = free or run.gpus
    each, rest = divmod(run.gpus, len(nodes))
    if rest == 0 and all(room[n] >= each for n in nodes):
        return dict.fromkeys(nodes, each)
    numbers: dict[str, int] = {}
    left = run.gpus
    for i, node in enumerate(nodes):
        # each later node of the run holds at least one, or the scheduler would not list it
        numbers[node] = max(0, min(room[node], left - (len(nodes) - 1 - i)))
        left -= numbers[node]
    numbers[nodes[-1]] += left
    return {node: count for node, count in numbers.items() if count > 0}


def _claim_assumed(
    slots: Slots,
    run: JobRun,
    node: str,
    count: int,
    kind: str | None,
    phase: Phase,
    *,
    is_known: bool,
) -> None:
    """Put `count` GPUs on the lowest slots that are free for the run's life, the type's first.

    Where fragments alone are free the run moves from slot to slot, so that sums stay exact. Slots
    are made up only on nodes that no inventory knows.
    """
    held = slots[run.cluster, node]
    free = [s for s in held if s.is_free(run.start_ms, run.end_ms)]
    free.sort(key=lambda s: (not _is_type(s, kind), s.index))
    whole = run.claim(run.start_ms, run.end_ms, "assumed", phase)
    for slot in free[:count]:
        slot.add(whole)
    for _ in range(count - len(free[:count])):
        if is_known:
            _claim_fragments(held, run, phase)
        else:
            index = max((s.index for s in held), default=-1) + 1
            slot = Slot(f"{run.cluster}/{node}#{index}", "", index, kind)
            slot.add(whole)
            held.append(slot)


def _claim_fragments(held: list[Slot], run: JobRun, phase: Phase) -> None:
    """Claim one GPU's worth of time, moving on where a slot is taken."""
    moment = run.start_ms
    while moment < run.end_ms:
        # what is claimed after its end is nothing to the run
        slot = max(held, key=lambda s: (min(s.free_until_ms(moment), run.end_ms), -s.index))
        until = slot.free_until_ms(moment)
        if until <= moment:
            # all taken: the claim overlaps another run's, and the later start will have it
            own = [(s, [c for c in s.claims if c.job_run_key == run.key]) for s in held]
            open_ = [(s, claims) for s, claims in own if not _covers(claims, moment)]
            if not open_:
                return  # the run has every slot of the node already: there is no more to hold
            slot, claims = open_[0]
            turns = [c.end_ms for s in held for c in s.claims_within(moment, moment + 1)]
            until = min([*turns, *(c.start_ms for c in claims if c.start_ms > moment)])
        slot.add(run.claim(moment, min(until, run.end_ms), "assumed", phase))
        moment = min(until, run.end_ms)


def _covers(claims: list[Claim], moment: int) -> bool:
    return any(c.start_ms <= moment < c.end_ms for c in claims)


def _is_type(slot: Slot, kind: str | None) -> bool:
    return kind is None or (slot.gpu_type is not None and kind in slot.gpu_type)


def placed(
    slots: Slots, downs: Mapping[Node, list[int]], since_ms: Mapping[Node, int] | None = None
) -> Placed:
    """Return claims, holds and conflicts: of two claims at one time the later start has the slot.

    since_ms: of these nodes, and of them what ends then or later; None: everything.
    """
    slots_of_claims: list[tuple[Any, ...]] = []  # with how many claims follow
    claims: list[Claim] = []
    holds: list[tuple[Any, ...]] = []
    conflicts: list[tuple[Any, ...]] = []
    for (cluster, node), held in slots.items():
        first_ms = 0 if since_ms is None else since_ms.get((cluster, node), FOREVER_MS + 1)
        for slot in held:
            is_hold = _follow_one_another(slot.claims)
            late = (
                slot.claims if first_ms == 0 else [c for c in slot.claims if c.end_ms >= first_ms]
            )
            where = (node, *slot.name, slot.index)
            if late:
                slots_of_claims.append((cluster, *where, is_hold, len(late)))
                claims += late
            if is_hold:
                continue
            for start, end, claim, lost in _disjoint(slot.claims, downs.get((cluster, node), [])):
                if end < first_ms:
                    continue
                times = start, _open(end)
                holds.append((cluster, claim.job_run_key, *where, *times, claim.method))
                conflicts += [
                    (cluster, node, *slot.name, loser.job_run_key, claim.job_run_key, *times)
                    for loser in lost
                ]
    every = _frame_of_claims(slots_of_claims, claims)
    as_claimed = every.filter("is_hold").select(*HOLDS_SCHEMA)
    return Placed(
        every.select(*CLAIMS_SCHEMA),
        pl.concat([as_claimed, _frame(holds, HOLDS_SCHEMA)]),
        _frame(conflicts, CONFLICTS_SCHEMA),
    )


def _frame_of_claims(slots: list[tuple[Any, ...]], claims: list[Claim]) -> pl.DataFrame:
    """Return all claims, slot by slot: what they have of their slot is written once a slot."""
    of_slots = {"cluster": pl.String, **{name: HOLDS_SCHEMA[name] for name in OF_A_SLOT}}
    by_slot = _frame(slots, of_slots | {"is_hold": pl.Boolean, "claims": pl.Int64})
    of_claims = {name: CLAIMS_SCHEMA[name] for name in Claim._fields}
    return pl.concat(
        [
            by_slot.select(pl.exclude("claims").repeat_by("claims")).explode(*of_slots, "is_hold"),
            _frame(claims, of_claims),
        ],
        how="horizontal",
    ).with_columns(pl.col("end_ms").replace(FOREVER_MS, None))


def _follow_one_another(claims: list[Claim]) -> bool:
    """Say whether the claims on a slot are its holds: none is open, none overlaps another."""
    starts = [*(c.start_ms for c in claims[1:]), FOREVER_MS - 1]
    return all(
        c.start_ms < c.end_ms <= s for c, s in zip(claims, starts[: len(claims)], strict=True)
    )


def _frame(rows: Sequence[tuple[Any, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows as a frame, column by column: that takes half the time."""
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    return pl.DataFrame(
        [
            pl.Series(name, list(c), kind)
            for c, (name, kind) in zip(columns, schema.items(), strict=True)
        ]
    )


def _open(end_ms: int) -> int | None:
    return None if end_ms == FOREVER_MS else end_ms


def _disjoint(claims: list[Claim], downs: list[int]) -> list[tuple[int, int, Claim, list[Claim]]]:
    """Return the claims cut so that the latest start has the slot, with who lost it."""
    in_order = sorted(claims, key=lambda c: (c.start_ms, c.job_run_key))
    claims = []
    for claim in in_order:
        end_ms = claim.end_ms
        if end_ms == FOREVER_MS:
            stops = [*downs, *(c.start_ms for c in in_order)]
            end_ms = min((s for s in stops if s > claim.start_ms), default=FOREVER_MS)
        claims.append(claim if end_ms == claim.end_ms else claim._replace(end_ms=end_ms))
    if all(a.end_ms <= b.start_ms for a, b in pairwise(claims)):
        return [(c.start_ms, c.end_ms, c, []) for c in claims if c.end_ms > c.start_ms]
    bounds = sorted({c.start_ms for c in claims} | {c.end_ms for c in claims})
    cut: list[tuple[int, int, Claim, list[Claim]]] = []
    for start, end in pairwise(bounds):
        over = [c for c in claims if c.start_ms <= start and c.end_ms >= end]
        if not over:
            continue
        winner, lost = over[-1], over[:-1]
        if cut and cut[-1][2] is winner and cut[-1][1] == start and cut[-1][3] == lost:
            cut[-1] = (cut[-1][0], end, winner, lost)
        else:
            cut.append((start, end, winner, lost))
    return cut
