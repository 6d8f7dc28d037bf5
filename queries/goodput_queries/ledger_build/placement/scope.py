"""Incremental placement: places changed job runs again, and those whose placement depends on them.

Placement puts a job run on slots that the job runs before it left free while it ran. A changed job
run therefore affects a later one only where a slot that was free for it is now taken, or the other
way round. The loop follows changes until a fixed point; all other holds stay, however long the GPUs
of shared nodes have been held without a pause.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from goodput_queries.ledger_build.placement import place as placement
from goodput_queries.ledger_build.placement.evidence import (
    FOREVER_MS,
    down_moments,
    job_runs_to_place,
    reported_holds_by_job,
    slots_by_node,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from goodput_queries.ledger_build.placement.evidence import JobRun, Node, Slot, Slots

ASSUMED = "assumed"
NAMED, ON_A_NODE, ON_SOME_NODE = 1, 2, 3  # the order of placement: what is certain first
_Keys = dict["Node", set[str]]
_Times = dict[tuple[str, str], list[tuple[int, int]]]  # by slot


class _Hold(NamedTuple):
    """A hold of the previous build."""

    slot: tuple[str, str]
    start_ms: int
    end_ms: int
    method: str


@dataclass
class _Neighbours:
    """The other job runs on the nodes where something is placed again, by node.

    job_runs: those that hold GPUs there since, by start; `rank` is their position in that order.
    holds: of the previous build, by job run. conflicts: (loser, keeper) of the previous build.
    spread: changed job runs on several nodes, whose number of GPUs per node may have changed.
    """

    spread: set[str]
    rank: dict[str, int] = field(default_factory=dict)
    job_runs: dict[Node, list[JobRun]] = field(default_factory=lambda: defaultdict(list))
    holds: dict[Node, dict[str, list[_Hold]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    conflicts: dict[Node, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))


def place_again(cursor: duckdb.DuckDBPyConnection) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return holds and conflicts as `placement.place` does, of job runs that changed since a build.

    Reads temp.changed_job_runs and temp.job_runs_before; writes the keys of the job runs whose rows
    they replace, node by node, to temp.placed_again.
    """
    again = _changed(cursor)
    changed = {key for keys in again.values() for key in keys}
    while True:
        _note(cursor, again)
        if _take_whole_nodes(cursor, again):
            continue
        neighbours = _neighbours_of(cursor, changed)
        to_place = job_runs_to_place(
            cursor, "job_run_key in (select job_run_key from temp.placed_again)"
        )
        slots = slots_by_node(cursor)
        _restore_claims(slots, neighbours, again)
        numbers = {node: len(held) for node, held in slots.items()}
        placement.claim(to_place, slots, reported_holds_by_job(cursor), again)
        made_up = [node for node, held in slots.items() if len(held) != numbers.get(node)]
        more = _affected(again, neighbours, slots)
        if not _spread_to(again, [*more, *_all_of(cursor, made_up)]):
            break
    for node, held in slots.items():
        for slot in held:
            slot.claims = [c for c in slot.claims if c.job_run_key in again.get(node, ())]
    return placement.resolved(slots, down_moments(cursor))


def _changed(cursor: duckdb.DuckDBPyConnection) -> _Keys:
    """Return the job runs with new evidence since the last build, with their nodes."""
    found: _Keys = defaultdict(set)
    for cluster, node, key in cursor.execute(
        """select cluster, unnest(nodes), job_run_key
        from (from intermediate.int_job_runs union all from temp.job_runs_before)
        semi join temp.changed_job_runs using (job_run_key)
        union
        -- GPUs that a source has reported since
        select runs.cluster, unnest(list_append(runs.nodes, holds.node)), runs.job_run_key
        from intermediate.int_reported_holds as holds
        inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
        where holds.load_sequence > built_sequence()
            -- every poll repeats a label: a GPU that it already named is no change
            and (holds.method <> 'hpc_job' or not exists (
                from intermediate.int_holds as placed
                where placed.job_run_key = holds.job_run_key
                    and placed.gpu_uuid = holds.gpu_uuid
                    and placed.gpu_instance = holds.gpu_instance
                    and placed.method = 'hpc_job'
            ))
        union
        select runs.cluster, unnest(list_append(runs.nodes, holds.node)), runs.job_run_key
        from staging.stg_inferred_holds as holds
        inner join intermediate.int_job_runs as runs using (job_run_key)
        semi join temp.changed_inferred_holds using (job_run_key)
        union
        -- a hold without an end stops when its node goes down
        select runs.cluster, unnest(runs.nodes), runs.job_run_key
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs as runs using (job_run_key)
        inner join staging.stg_node_states as states
            on holds.cluster = states.cluster
            and holds.node = states.node
            and states.state = 'down'
            and states.start_ms > holds.start_ms
        where runs.end_ms is null"""
    ).fetchall():
        found[cluster, node].add(key)
    return found


def _note(cursor: duckdb.DuckDBPyConnection, again: _Keys) -> None:
    """Write job runs to place (temp.placed_again), and since when on each node (temp.places)."""
    rows = [(*node, key) for node, keys in again.items() for key in keys]
    schema = ["cluster", "node", "job_run_key"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(schema, pl.String), orient="row")
    cursor.register("placed", frame.to_arrow())
    cursor.execute("create or replace temp table placed_again as from placed")
    cursor.unregister("placed")
    cursor.execute(
        """create or replace temp table places as
        select again.cluster, again.node, coalesce(min(runs.start_ms), $1) as ms
        from temp.placed_again as again
        left join (
            select job_run_key, start_ms from intermediate.int_job_runs
            union all
            select job_run_key, start_ms from temp.job_runs_before
        ) as runs using (job_run_key)
        group by again.cluster, again.node""",
        [FOREVER_MS],
    )


def _take_whole_nodes(cursor: duckdb.DuckDBPyConnection, again: _Keys) -> bool:
    """Add all job runs of nodes with slots that only holds report; return whether it added any.

    Such a slot exists for every job run of the node, and disappears with those that named it.
    """
    made_up = cursor.execute(
        """with known as (
            select distinct cluster, node, gpu_uuid
            from intermediate.int_slots semi join temp.places using (cluster, node)
        )
        select cluster, node from temp.places anti join known using (cluster, node)
        union
        select cluster, node
        from intermediate.int_first_holds
        semi join temp.places using (cluster, node)
        anti join known using (cluster, node, gpu_uuid)
        union
        select cluster, node
        from intermediate.int_holds inner join temp.places using (cluster, node)
        anti join intermediate.int_slots using (cluster, node, gpu_uuid, gpu_instance)
        where coalesce(end_ms, $1) > places.ms""",
        [FOREVER_MS],
    ).fetchall()
    return _spread_to(again, _all_of(cursor, made_up))


def _all_of(cursor: duckdb.DuckDBPyConnection, nodes: Iterable[Node]) -> list[tuple[Node, str]]:
    """Return all job runs of nodes, each with all nodes it has."""
    frame = pl.DataFrame(
        list(nodes), schema={"cluster": pl.String, "node": pl.String}, orient="row"
    )
    if frame.is_empty():
        return []
    cursor.register("placed", frame.to_arrow())
    found = cursor.execute(
        """select cluster, unnest(nodes), job_run_key
        from intermediate.int_job_runs
        where job_run_key in (
            select job_run_key
            from (select job_run_key, cluster, unnest(nodes) as node from intermediate.int_job_runs)
            semi join placed using (cluster, node)
        )"""
    ).fetchall()
    cursor.unregister("placed")
    return [((cluster, node), key) for cluster, node, key in found]


def _neighbours_of(cursor: duckdb.DuckDBPyConnection, changed: set[str]) -> _Neighbours:
    """Return the job runs, holds and conflicts on the nodes of temp.places since their times."""
    found = _Neighbours(spread=set())
    places = {(c, n): ms for c, n, ms in cursor.execute("from temp.places").fetchall()}
    # the earliest time of all as a constant too: zone maps then exclude most rows
    is_since = f"(end_ms is null or end_ms > {min(places.values(), default=FOREVER_MS)})"
    is_there = f"coalesce(end_ms, {FOREVER_MS}) > places.ms"
    runs = job_runs_to_place(
        cursor,
        f"""{is_since} and job_run_key in (
            select job_run_key
            from (
                select job_run_key, cluster, unnest(nodes) as node, end_ms
                from intermediate.int_job_runs
                where {is_since}
            )
            inner join temp.places using (cluster, node)
            where {is_there}
        )""",
    )
    for rank, run in enumerate(runs):
        found.rank[run.key] = rank
        if len(run.nodes) > 1 and run.key in changed:
            found.spread.add(run.key)
        for node in dict.fromkeys((run.cluster, node) for node in run.nodes):
            if node in places and run.end_ms > places[node]:
                found.job_runs[node].append(run)
    for cluster, node, key, uuid, instance, start_ms, end_ms, method in cursor.execute(
        f"""select cluster, node, job_run_key, gpu_uuid, gpu_instance, start_ms,
            coalesce(end_ms, {FOREVER_MS}), method
        from intermediate.int_holds inner join temp.places using (cluster, node)
        where {is_since} and {is_there}"""
    ).fetchall():
        found.holds[cluster, node][key].append(_Hold((uuid, instance), start_ms, end_ms, method))
    for cluster, node, loser, keeper in cursor.execute(
        f"""select distinct cluster, node, job_run_key, kept_by
        from intermediate.int_hold_conflicts inner join temp.places using (cluster, node)
        where {is_since} and {is_there}"""
    ).fetchall():
        found.conflicts[cluster, node].add((loser, keeper))
    return found


def _restore_claims(slots: Slots, neighbours: _Neighbours, again: _Keys) -> None:
    """Claim the slots that job runs which are not placed again already hold."""
    for node, by_run in neighbours.holds.items():
        by_name: dict[tuple[str, str], list[Slot]] = defaultdict(list)
        for slot in slots.get(node, ()):
            by_name[slot.name].append(slot)
        for key, holds in by_run.items():
            for hold in holds if key not in again[node] else ():
                named = by_name[hold.slot]
                slot = next((s for s in named if s.from_ms <= hold.start_ms < s.to_ms), named[0])
                slot.claim(key, hold.start_ms, hold.end_ms, hold.method)


def _spread_to(again: _Keys, more: Iterable[tuple[Node, str]]) -> bool:
    """Add these to the job runs to place; return whether one of them is new."""
    is_more = False
    for node, key in more:
        if key not in again[node]:
            again[node].add(key)
            is_more = True
    return is_more


def _affected(again: _Keys, neighbours: _Neighbours, slots: Slots) -> list[tuple[Node, str]]:
    """Return the job runs outside `again` whose holds may change."""
    found: list[tuple[Node, str]] = []
    for node in list(again):
        keys = again[node]
        runs = {run.key: run for run in neighbours.job_runs[node]}
        more = _in_conflict(keys, neighbours.conflicts[node]) | _overlapped(
            slots.get(node, ()), keys
        )
        more |= _running_below_claim(node, neighbours, slots)
        more |= _with_other_free_slots(node, keys, neighbours, slots)
        for key in more - keys:
            found.append((node, key))
            if (
                key in runs
                and _order(neighbours.holds[node].get(key, []), runs[key]) == ON_SOME_NODE
            ):
                found += [((node[0], other), key) for other in runs[key].nodes]
    return found


def _in_conflict(keys: set[str], conflicts: set[tuple[str, str]]) -> set[str]:
    """Return the job runs in a conflict with one that is placed again."""
    return {key for pair in conflicts if keys & set(pair) for key in pair}


def _overlapped(held: Iterable[Slot], keys: set[str]) -> set[str]:
    """Return the job runs whose claims overlap those of job runs that are placed again."""
    found: set[str] = set()
    for slot in held:
        for claim in slot.claims:
            if claim.job_run_key in keys:
                found.update(
                    other.job_run_key for other in slot.claims_within(claim.start_ms, claim.end_ms)
                )
    return found


def _running_below_claim(node: Node, neighbours: _Neighbours, slots: Slots) -> set[str]:
    """Return running job runs that may hold less than they claim: a later one took their GPU.

    A job run that holds all its GPUs on its one node, or all GPUs of a node, is not one of them.
    """
    found: set[str] = set()
    for run in neighbours.job_runs[node]:
        held = [hold.end_ms for hold in neighbours.holds[node].get(run.key, ())]
        whole = run.gpus if len(run.nodes) == 1 else len(slots.get(node, ()))
        if run.end_ms == FOREVER_MS and held != [FOREVER_MS] * whole:
            found.add(run.key)
    return found


def _with_other_free_slots(
    node: Node, keys: set[str], neighbours: _Neighbours, slots: Slots
) -> set[str]:
    """Return the job runs placed later that now find other slots of the node free."""
    claims: dict[str, list[_Hold]] = defaultdict(list)
    for slot in slots.get(node, ()):
        for claim in slot.claims:
            if (key := claim.job_run_key) in keys:
                claims[key].append(_Hold(slot.name, claim.start_ms, claim.end_ms, claim.method))
    in_conflict = {key for pair in neighbours.conflicts[node] for key in pair}
    standing = [run for run in neighbours.job_runs[node] if run.key not in keys]
    found: set[str] = set()
    for key in keys:
        old, new = neighbours.holds[node].get(key, []), claims[key]
        before, now = _times(old), _times(new)
        is_reordered = bool(old) and (key in neighbours.spread or _is_reordered(old, new))
        if before == now and not is_reordered:
            continue
        # its position in the order of placement is not known: it may affect every other
        is_moved = key in in_conflict or is_reordered
        first = min(_first_order(old), _first_order(new))
        place = first, -1 if is_moved else neighbours.rank.get(key, -1)
        for run in standing:
            held = neighbours.holds[node].get(run.key, [])
            if (_order(held, run), neighbours.rank[run.key]) < place:
                continue
            is_whole = run.key not in in_conflict and all(
                (h.start_ms, h.end_ms) == (run.start_ms, run.end_ms) for h in held
            )
            if _sees(run, before, now, is_any=is_moved or not held or not is_whole):
                found.add(run.key)
    return found


def _times(holds: Iterable[_Hold]) -> _Times:
    found: _Times = defaultdict(list)
    for hold in sorted(holds):
        found[hold.slot].append((hold.start_ms, hold.end_ms))
    return found


def _first_order(holds: list[_Hold]) -> int:
    """Return the position in the order of placement at which a job run takes its first slot."""
    return ON_A_NODE if all(hold.method == ASSUMED for hold in holds) else NAMED


def _is_reordered(old: list[_Hold], new: list[_Hold]) -> bool:
    """Say whether a job run's position in the order of placement may have changed."""
    ways = [
        ({h.start_ms for h in holds}, {h.method == ASSUMED for h in holds}) for holds in (old, new)
    ]
    return ways[0] != ways[1]


def _order(holds: list[_Hold], run: JobRun) -> int:
    """Return the position in the order of placement at which a job run takes its last slot."""
    if holds and all(hold.method != ASSUMED for hold in holds):
        return NAMED
    return ON_A_NODE if len(run.nodes) == 1 else ON_SOME_NODE


def _sees(run: JobRun, before: _Times, now: _Times, *, is_any: bool) -> bool:
    """Say whether a job run finds other slots free than before; `is_any`: or may find."""
    for slot in before.keys() | now.keys():
        was, is_ = (
            any(start < run.end_ms and end > run.start_ms for start, end in times.get(slot, ()))
            for times in (before, now)
        )
        if was != is_ or (is_any and (was or is_)):
            return True
    return False
