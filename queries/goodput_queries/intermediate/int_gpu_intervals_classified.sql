-- Every moment of every unit in exactly one category: one case, in the order of precedence of the
-- accounting rules (section 1.4). The only place where a category is decided.
-- grain: gpu_uuid, gpu_instance, start_ms
with states as (select * from intermediate.int_unit_states),

holds as (
    select distinct job_run_key, hash(job_run_key) as hold_id from intermediate.int_holds
),

pieces as (
    select distinct
        attempt_key,
        category,
        phase,
        hash(attempt_key, category, phase) as piece_id
    from intermediate.int_run_timeline
),

splits as (
    select distinct category, hash(category) as split_id from intermediate.int_step_splits
),

node_intervals as (
    select *, hash(cluster, node, start_ms) as node_interval_id from intermediate.int_node_intervals
)

select
    states.gpu_uuid,
    states.gpu_instance,
    states.start_ms,
    states.end_ms,
    holds.job_run_key,
    pieces.attempt_key,
    case
        when states.hold_id <> 0 then
            case
                when pieces.category = 'step_unsplit' then coalesce(splits.category, 'step_unsplit')
                when pieces.category is not null then pieces.category
                when states.emptiness = 1 then 'idle_held'
                when states.activity = 1 and states.stretch_ms >= threshold('idle_min_ms') then 'idle_held'
                when states.activity in (1, 2) then 'busy_unclassified'
                else 'unknown'
            end
        when node_intervals.state is not null then node_intervals.state
        when node_intervals.is_reserved then 'reserved_idle'
        when node_intervals.is_planned then 'planned'
        when node_intervals.is_stranded or states.gpu_instance = 'rest' then 'stranded'
        when node_intervals.is_watched and node_intervals.has_demand then 'idle_with_demand'
        when node_intervals.is_watched then 'idle_no_demand'
        else 'free_unknown'
    end as category,
    case
        when states.hold_id <> 0 then
            case
                when pieces.category = 'step_unsplit' then
                    case
                        when splits.category is null then pieces.phase
                        when splits.category in ('idle_held', 'busy_unclassified') then 'undeclared_gap'
                    end
                when pieces.category is not null then pieces.phase
                when states.emptiness = 1 then 'no_process'
                when states.activity = 1 and states.stretch_ms < threshold('idle_min_ms') then 'short_idle'
            end
        when
            node_intervals.is_watched
            and node_intervals.state is null
            and not node_intervals.is_demand_known
            then 'demand_unknown'
    end as phase
from states
left join holds using (hold_id)
left join pieces using (piece_id)
left join splits using (split_id)
left join node_intervals using (node_interval_id)
