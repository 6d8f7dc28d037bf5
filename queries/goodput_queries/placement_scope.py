"""Which holds a build has to put on GPUs again: those of nodes on which something changed.

A claim matters to another only while both last. So on each node it is enough to go back to a moment
at which nothing was held that still is later; from there all claims are made anew, in the order in
which a placement of everything would make them, and come out the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

BEGINNING_MS = -(2**62)
MARGIN_MS = 86_400_000  # looked at beyond what is needed at first: runs reach back over each other
Node = tuple[str, str]  # cluster, node
_Run = tuple[str, list[str], int, int, bool]


def changed_nodes(cursor: duckdb.DuckDBPyConnection) -> dict[Node, int]:
    """Return from when on (epoch ms) the holds of which nodes are to be made anew.

    Reads temp.changed_job_runs and temp.job_runs_before; the nodes of a job run whose split over
    nodes is unknown change together.
    """
    since = {
        (cluster, node): start_ms
        for cluster, node, start_ms in cursor.execute(
            """with changed as (
                select cluster, unnest(nodes) as node, start_ms
                from (
                    from intermediate.int_job_runs
                    union all
                    from temp.job_runs_before
                )
                semi join temp.changed_job_runs using (job_run_key)
                union all
                -- GPUs that a source has named since
                select runs.cluster, unnest(list_append(runs.nodes, holds.node)), runs.start_ms
                from intermediate.int_told_holds as holds
                inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
                where holds.load_sequence > built_sequence()
                    -- a label is read again and again: what it named is named
                    and (holds.method <> 'hpc_job' or not exists (
                        from intermediate.int_holds as placed
                        where placed.job_run_key = holds.job_run_key
                            and placed.gpu_uuid = holds.gpu_uuid
                            and placed.gpu_instance = holds.gpu_instance
                            and placed.method = 'hpc_job'
                    ))
                union all
                -- what the scheduler lost track of ends when its node goes down
                select holds.cluster, holds.node, holds.start_ms
                from intermediate.int_holds as holds
                inner join intermediate.int_job_runs as runs using (job_run_key)
                inner join staging.stg_node_states as states
                    on holds.cluster = states.cluster
                    and holds.node = states.node
                    and states.state = 'down'
                    and states.start_ms > holds.start_ms
                where runs.end_ms is null
            )
            select cluster, node, min(start_ms)
            from changed
            where start_ms is not null
            group by cluster, node"""
        ).fetchall()
    }
    known = set(
        cursor.execute(
            "select distinct cluster, node from intermediate.int_gpu_inventory"
        ).fetchall()
    )
    return _closed(cursor, since, known)


def _closed(
    cursor: duckdb.DuckDBPyConnection, since: dict[Node, int], known: set[Node]
) -> dict[Node, int]:
    """Go back, node by node, until nothing is held over the moment."""
    seen_from: int | None = None
    runs: list[_Run] = []
    while since:
        for node in since.keys() - known:
            since[node] = BEGINNING_MS  # GPUs of such a node are those that its jobs made up
        earliest = min(since.values())
        if seen_from is not None and earliest >= seen_from:
            break
        seen_from = earliest - MARGIN_MS
        runs = _runs_after(cursor, seen_from)
        _settle(since, runs)
    return since


def _settle(since: dict[Node, int], runs: list[_Run]) -> None:
    """Go back on the nodes of runs that began before a moment and end after it."""
    is_settled = False
    while not is_settled:
        is_settled = True
        for cluster, nodes, start_ms, end_ms, is_named in runs:
            here = [place for node in nodes if (place := (cluster, node)) in since]
            if not any(end_ms > since[place] for place in here):
                continue
            for place in here if is_named else [(cluster, node) for node in nodes]:
                if start_ms < since.get(place, end_ms):
                    since[place] = start_ms
                    is_settled = False


def _runs_after(cursor: duckdb.DuckDBPyConnection, ms: int) -> list[_Run]:
    """Return cluster, nodes, start, end of the runs that end after, and if all GPUs are named.

    The latest start comes first. A run on one node counts as named: its GPUs cannot be elsewhere.
    """
    return cursor.execute(
        """with runs as (
            select *
            from intermediate.int_job_runs
            where start_ms is not null and gpus > 0
                and coalesce(end_ms, 9223372036854775807) > $1
        ),
        named as (
            select runs.job_run_key, sum(coalesce(holds.gpus, 1)) as gpus
            from raw.holds as holds
            inner join runs
                on holds.cluster = runs.cluster
                and holds.job_id_raw = runs.job_id_raw
                and to_ms(holds.submit_at) = runs.submit_ms
            where (holds.slurm_index is not null or holds.gpu_uuid is not null)
                and len(runs.nodes) > 1
            group by runs.job_run_key
        )
        select runs.cluster, runs.nodes, start_ms, coalesce(end_ms, 9223372036854775807),
            len(runs.nodes) = 1 or coalesce(named.gpus = runs.gpus, false)
        from runs
        left join named using (job_run_key)
        order by start_ms desc""",
        [ms],
    ).fetchall()
