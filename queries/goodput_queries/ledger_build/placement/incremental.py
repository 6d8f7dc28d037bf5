"""Incremental placement: from the start of what changed on, a node is placed again.

Within a phase, placement goes by the start of job runs, so that those before the first changed one
keep their claims. Named GPUs come first whenever their job runs start: where their claims differ,
assumed job runs that ran at that time are placed again too. A job run that is spread over several
nodes makes all of them dirty. This is repeated until no node is dirty from an earlier time.
"""

from collections import defaultdict
from collections.abc import Iterable

import duckdb

from goodput_queries.ledger_build.placement.dirty_nodes import (
    Since,
    Stored,
    add_before_named,
    add_made_up,
    add_spread,
)
from goodput_queries.ledger_build.placement.evidence import (
    FOREVER_MS,
    Claim,
    Node,
    Phase,
    Slots,
    down_moments,
    job_runs_to_place,
    reported_holds_by_job,
    slots_by_node,
)
from goodput_queries.ledger_build.placement.place import Placed, claim, placed


def place_again(cursor: duckdb.DuckDBPyConnection) -> Placed:
    """Return the claims, holds and conflicts of the nodes in temp.dirty_nodes, which it writes.

    They end at `since_ms` of their node or later, and replace the stored ones that do. Reads
    temp.changed_job_runs and temp.job_runs_before.
    """
    since = _changed(cursor)
    while True:
        since.write(cursor)
        if not since.by_node:
            return placed({}, {})
        runs = job_runs_to_place(cursor, f"job_run_key in ({_DIRTY_JOB_RUNS})")
        add_made_up(since, runs, _nodes_with_made_up_slots(cursor))
        if since.is_earlier:
            continue
        slots = slots_by_node(cursor)
        sizes = {node: len(held) for node, held in slots.items()}
        stored = _stored_claims(cursor)
        kept = _Kept(slots, stored, since)
        claim(runs, slots, reported_holds_by_job(cursor), since.has, kept.restore)
        grown = {node for node, held in slots.items() if len(held) != sizes.get(node, 0)}
        add_made_up(since, runs, grown)
        add_spread(since, runs, slots, stored)
        add_before_named(since, slots, stored)
        if not since.is_earlier:
            return placed(slots, down_moments(cursor), since.by_node)


_DIRTY_JOB_RUNS = """
    select job_run_key
    from (
        select job_run_key, cluster, unnest(nodes) as node, start_ms from intermediate.int_job_runs
        union all
        -- on nodes that a source has reported and the record has not
        select job_run_key, cluster, node, run_start_ms from intermediate.int_claims
    )
    inner join temp.dirty_nodes using (cluster, node)
    where start_ms >= since_ms"""


def _changed(cursor: duckdb.DuckDBPyConnection) -> Since:
    """Return the nodes of job runs with new evidence, from the start of these on."""
    rows = cursor.execute(
        """with changed as (
            select cluster, unnest(nodes) as node, start_ms
            from (from intermediate.int_job_runs union all from temp.job_runs_before)
            semi join temp.changed_job_runs using (job_run_key)
            union all
            select claims.cluster, claims.node, claims.run_start_ms
            from intermediate.int_claims as claims
            semi join temp.changed_job_runs using (job_run_key)
            union all
            -- GPUs that a source had reported before, on nodes that the record has not
            select runs.cluster, holds.node, runs.start_ms
            from intermediate.int_reported_holds as holds
            inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
            where runs.job_run_key in (select job_run_key from temp.changed_job_runs)
            union all
            -- GPUs that a source has reported since
            select runs.cluster, unnest(list_append(runs.nodes, holds.node)), runs.start_ms
            from intermediate.int_reported_holds as holds
            inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
            where holds.load_sequence > built_sequence()
                -- every poll repeats a label: a GPU that it already named is no change
                and (holds.method <> 'hpc_job' or not exists (
                    from intermediate.int_holds as known
                    where known.job_run_key = holds.job_run_key
                        and known.gpu_uuid = holds.gpu_uuid
                        and known.gpu_instance = holds.gpu_instance
                        and known.method = 'hpc_job'
                ))
            union all
            select runs.cluster, unnest(list_append(runs.nodes, holds.node)), runs.start_ms
            from staging.stg_inferred_holds as holds
            inner join intermediate.int_job_runs as runs using (job_run_key)
            semi join temp.changed_inferred_holds using (job_run_key)
            union all
            -- a claim without an end stops when its node goes down
            select claims.cluster, claims.node, claims.run_start_ms
            from intermediate.int_claims as claims
            inner join staging.stg_node_states as states
                on claims.cluster = states.cluster
                and claims.node = states.node
                and states.state = 'down'
                and states.start_ms > claims.start_ms
            where claims.end_ms is null
        )
        select cluster, node, min(start_ms)
        from changed
        where start_ms is not null
        group by cluster, node"""
    ).fetchall()
    since = Since()
    for cluster, node, start_ms in rows:
        since.add((cluster, node), start_ms)
    return since


def _nodes_with_made_up_slots(cursor: duckdb.DuckDBPyConnection) -> set[Node]:
    """Return nodes with slots that only holds report, among dirty ones and those of their runs.

    Such a slot exists for every job run of the node, and disappears with those that named it.
    """
    rows = cursor.execute(
        """with nodes as (
            select cluster, node from temp.dirty_nodes
            union
            select cluster, unnest(nodes) from temp.job_runs_to_place where len(nodes) > 1
        ),
        known as (
            select distinct cluster, node, gpu_uuid
            from intermediate.int_slots semi join nodes using (cluster, node)
        )
        from nodes anti join known using (cluster, node)
        union
        select cluster, node
        from intermediate.int_first_holds
        semi join nodes using (cluster, node)
        anti join known using (cluster, node, gpu_uuid)
        union
        select cluster, node
        from intermediate.int_claims
        semi join nodes using (cluster, node)
        anti join intermediate.int_slots using (cluster, node, gpu_uuid, gpu_instance)"""
    ).fetchall()
    return {(cluster, node) for cluster, node in rows}


def _stored_claims(cursor: duckdb.DuckDBPyConnection) -> list[Stored]:
    """Return the claims of dirty nodes that end at their time or later, and those among them.

    A claim that began earlier may have been cut by others that have ended since.
    """
    rows = cursor.execute(
        f"""with later as (
            select claims.*
            from intermediate.int_claims as claims
            inner join temp.dirty_nodes as nodes using (cluster, node)
            where claims.end_ms is null
                -- the earliest time of all as a constant: zone maps then exclude most rows
                or claims.end_ms >= {_earliest_ms(cursor)} and claims.end_ms >= nodes.since_ms
        ),
        reach as (select cluster, node, min(start_ms) as first_ms from later group by all)
        select
            claims.cluster, claims.node, claims.gpu_uuid, claims.gpu_instance, claims.job_run_key,
            claims.start_ms, coalesce(claims.end_ms, {FOREVER_MS}), claims.method, claims.phase,
            claims.run_start_ms
        from intermediate.int_claims as claims
        inner join reach using (cluster, node)
        where claims.end_ms is null or claims.end_ms >= reach.first_ms
        order by claims.start_ms, claims.job_run_key"""
    ).fetchall()
    return [
        ((cluster, node), (uuid, instance), Claim(key, start, end, method, Phase(phase), run_start))
        for cluster, node, uuid, instance, key, start, end, method, phase, run_start in rows
    ]


def _earliest_ms(cursor: duckdb.DuckDBPyConnection) -> int:
    sql = "select coalesce(min(since_ms), 0) from temp.dirty_nodes"
    return int(cursor.execute(sql).fetchall()[0][0])


class _Kept:
    """The stored claims of job runs that are not placed again."""

    def __init__(self, slots: Slots, stored: Iterable[Stored], since: Since) -> None:
        self.slots = slots
        self.by_phase: dict[Phase, list[Stored]] = defaultdict(list)
        for node, name, kept in stored:
            if kept.run_start_ms < since.by_node[node]:
                self.by_phase[kept.phase].append((node, name, kept))

    def restore(self, phase: Phase) -> None:
        """Put those of a phase on their slots."""
        for node, name, kept in self.by_phase[phase]:
            named = [slot for slot in self.slots[node] if slot.name == name]
            there = (slot for slot in named if slot.from_ms <= kept.start_ms < slot.to_ms)
            next(there, named[0]).add(kept)
