"""Set-wise placement: of most nodes it is certain which GPUs each job run had, and SQL finds them.

A job run is certain where a source names as many GPUs as it has, each of which is one slot, or
where it has all GPUs of its nodes and no source reports any. On a node whose job runs are all
certain, and on each slot follow one another, claims do not depend on the order of placement, and
are the holds. Job runs of other nodes are placed there in sequence (`place.py`).
"""

import duckdb

from goodput_queries.ledger_build.placement.evidence import Phase, draft_job_runs
from goodput_queries.ledger_build.placement.place import Placed, place

SET_WISE_JOB_RUNS_MIN = 1_000  # of fewer, placement in sequence takes less than planning this

_SLOTS = """create or replace temp table numbered_slots as
select
    *,
    row_number() over () as slot,
    -- how many a name that a source gives could mean
    count(*) over (partition by cluster, node, slurm_index) as of_index,
    count(*) over (partition by cluster, node, gpu_uuid) as of_gpu,
    count(*) over (partition by cluster, node, gpu_uuid, gpu_instance) as of_instance
from (
    select
        cluster, node, gpu_uuid, gpu_instance, from_ms, to_ms,
        coalesce(slot, row_number() over (
            partition by cluster, node
            order by gpu_uuid, gpu_instance, slot, gpu_type, from_ms, to_ms
        ) - 1)::integer as slurm_index
    from intermediate.int_slots
    semi join (
        select cluster, unnest(nodes) as node from temp.job_runs_to_place
    ) using (cluster, node)
)"""

_REPORTS = """create or replace temp table reported_slots as
select
    runs.job_run_key, runs.gpus as gpus_of_run, runs.start_ms, runs.end_ms,
    holds.cluster, holds.node, holds.method,
    slots.slot, slots.gpu_uuid, slots.gpu_instance, slots.slurm_index,
    holds.start_ms is null
        and holds.end_ms is null
        and coalesce(holds.gpus, 1) <= 1
        and slots.slot is not null
        and case
            when holds.gpu_uuid is null then slots.of_index
            when coalesce(holds.gpu_instance, '') = '' then slots.of_gpu
            else slots.of_instance
        end = 1 as is_certain
from intermediate.int_reported_holds as holds
inner join temp.job_runs_to_place as runs using (cluster, job_id_raw, submit_ms)
left join temp.numbered_slots as slots
    on holds.cluster = slots.cluster
    and holds.node = slots.node
    and case
        when holds.gpu_uuid is null then slots.slurm_index = holds.slurm_index
        else slots.gpu_uuid = holds.gpu_uuid
            and coalesce(holds.gpu_instance, '') in ('', slots.gpu_instance)
    end"""

_CERTAIN_JOB_RUNS = """create or replace temp table certain_job_runs as
with of_whole_nodes as (
    select job_run_key, cluster, gpus, start_ms, end_ms, unnest(nodes) as node, len(nodes) as nodes
    from temp.job_runs_to_place
    anti join temp.reported_slots using (job_run_key)
    where len(list_distinct(nodes)) = len(nodes)
),
counted as (
    select
        runs.job_run_key, any_value(runs.gpus) as gpus, any_value(runs.nodes) as nodes,
        count(slots.slot) as slots,
        count(slots.slot) filter (
            slots.from_ms <= runs.start_ms
            and (runs.end_ms is null or slots.to_ms is null or slots.to_ms >= runs.end_ms)
        ) as slots_throughout
    from of_whole_nodes as runs
    left join temp.numbered_slots as slots using (cluster, node)
    group by runs.job_run_key
)
select job_run_key, true as is_named
from temp.reported_slots
group by job_run_key
having bool_and(is_certain) and count(*) = any_value(gpus_of_run) and min(method) = max(method)
union all
select job_run_key, false
from counted
where slots_throughout = gpus and (nodes = 1 or slots = gpus)"""

# a GPU that the inventory lacks may become a slot there, and the node has more then
_UNCERTAIN_SIZES = """delete from temp.certain_job_runs
where not is_named and job_run_key in (
    select job_run_key
    from (select job_run_key, cluster, unnest(nodes) as node from temp.job_runs_to_place)
    semi join (
        from temp.reported_slots anti join temp.certain_job_runs using (job_run_key)
    ) using (cluster, node)
)"""

_CLAIMS = """create or replace temp table certain_claims as
with downs as (
    select cluster, node, start_ms as down_ms from staging.stg_node_states where state = 'down'
),
claims as (
    select cluster, job_run_key, node, slot, gpu_uuid, gpu_instance, slurm_index,
        start_ms, end_ms, method
    from temp.reported_slots
    semi join (from temp.certain_job_runs where is_named) using (job_run_key)
    union all
    select cluster, runs.job_run_key, node, slots.slot, slots.gpu_uuid, slots.gpu_instance,
        slots.slurm_index, runs.start_ms, runs.end_ms, 'exact'
    from (
        select job_run_key, cluster, start_ms, end_ms, unnest(nodes) as node
        from temp.job_runs_to_place
        semi join (from temp.certain_job_runs where not is_named) using (job_run_key)
    ) as runs
    inner join temp.numbered_slots as slots using (cluster, node)
    where slots.from_ms <= runs.start_ms
        and (runs.end_ms is null or slots.to_ms is null or slots.to_ms >= runs.end_ms)
),
followed as (
    select *, lead(start_ms) over (partition by slot order by start_ms) as next_start_ms
    from claims
),
-- a claim without an end stops where the next one starts, or its node goes down
stopped as (
    select *, end_ms as until_ms from followed where end_ms is not null
    union all
    select followed.*, least(downs.down_ms, next_start_ms)
    from followed
    asof left join downs
        on followed.cluster = downs.cluster
        and followed.node = downs.node
        and followed.start_ms < downs.down_ms
    where end_ms is null
)
select
    *, coalesce(until_ms > next_start_ms or start_ms = next_start_ms, false) as is_overlapping
from stopped"""

_NODES_IN_SEQUENCE = """create or replace temp table nodes_in_sequence as
select cluster, node from temp.certain_claims where is_overlapping
union
select cluster, node
from (
    select job_run_key, cluster, unnest(nodes) as node from temp.job_runs_to_place
    union all
    select job_run_key, cluster, node from temp.reported_slots
)
anti join temp.certain_job_runs using (job_run_key)"""

_JOB_RUNS_IN_SEQUENCE = """create or replace temp table job_runs_in_sequence as
select distinct job_run_key
from (
    select job_run_key, cluster, unnest(nodes) as node from temp.job_runs_to_place
    union all
    select job_run_key, cluster, node from temp.reported_slots
)
semi join temp.nodes_in_sequence using (cluster, node)"""

# the columns of holds
_OF_CERTAIN = """select
    cluster, job_run_key, node, gpu_uuid, gpu_instance, slurm_index, start_ms, {}
from temp.certain_claims
anti join temp.nodes_in_sequence using (cluster, node)
order by cluster, node, slurm_index, start_ms"""
_CERTAIN = {
    "claims": _OF_CERTAIN.format(f"end_ms, method, {Phase.NAMED:d}, start_ms"),
    "holds": _OF_CERTAIN.format("until_ms, method"),
}
# the stages that placement writes
STAGES = {"claims": "int_claims", "holds": "int_holds", "conflicts": "int_hold_conflicts"}


def place_all(cursor: duckdb.DuckDBPyConnection) -> int:
    """Write temp.int_claims, temp.int_holds and temp.int_hold_conflicts; return how many holds."""
    if draft_job_runs(cursor) < SET_WISE_JOB_RUNS_MIN:
        return write(cursor, place(cursor))
    for statement in (
        _SLOTS,
        _REPORTS,
        _CERTAIN_JOB_RUNS,
        _UNCERTAIN_SIZES,
        _CLAIMS,
        _NODES_IN_SEQUENCE,
        _JOB_RUNS_IN_SEQUENCE,
    ):
        cursor.execute(statement)
    nodes = set(cursor.execute("from temp.nodes_in_sequence").fetchall())
    where = "job_run_key in (select job_run_key from temp.job_runs_in_sequence)"
    return write(cursor, place(cursor, where, nodes), has_certain=True)


def write(cursor: duckdb.DuckDBPyConnection, placed: Placed, *, has_certain: bool = False) -> int:
    """Write what was placed to temporary tables of these stages; return how many holds.

    has_certain: as well as the claims in temp.certain_claims.
    """
    rows = 0
    for name, frame in placed._asdict().items():
        cursor.register("placed", frame.to_arrow())
        certain = f"union all ({_CERTAIN[name]})" if has_certain and name in _CERTAIN else ""
        written = cursor.execute(
            f"create or replace temp table {STAGES[name]} as from placed {certain}"
        ).fetchall()
        cursor.unregister("placed")
        rows = int(written[0][0]) if name == "holds" else rows
    return rows
