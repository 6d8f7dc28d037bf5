-- The ledger of the scope as intervals of one GPU in one category, not split at hours: the drill-down of a loss. Of a
-- stretch of steps each category is one row with its amount. Its rows add up to the ledger, to the millisecond and
-- the cent.
-- grain: gpu_uuid, gpu_instance, run_key, category, blame, start_at
-- access: team
-- start_at, end_at: first and last of it, cut at the window; of hours whose readings were dropped, those of the hour
-- run_key, run_id, team, user_name: null where the GPU was not allocated
-- phase: the phase that covers most of the interval
-- is_amount: gpu_ms of the interval were in the category, in many parts (a stretch of steps)
with marked as (
    select
        *,
        coalesce(from_ms > max(until_ms) over (in_order rows between unbounded preceding and 1 preceding), true) as is_new
    from marts.ledger_blamed
    where gpu_ms <> 0
    window in_order as (
        partition by category, blame, gpu_uuid, gpu_instance, run_key, cluster, node order by from_ms, until_ms
    )
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by category, blame, gpu_uuid, gpu_instance, run_key, cluster, node
            -- of parts of one stretch all have its number
            order by from_ms, until_ms range between unbounded preceding and current row
        ) as island
    from marked
)

select
    numbered.cluster,
    numbered.node,
    numbered.gpu_uuid,
    numbered.gpu_instance,
    any_value(units.gpu_index) as gpu_index,
    numbered.run_key,
    any_value(columns(['run_id', 'team', 'user_name'])),
    numbered.category,
    any_value(categories.label) as label,
    numbered.blame,
    arg_max(coalesce(phases.label, replace(numbered.phase, '_', ' ')), numbered.gpu_ms) as phase,
    from_ms(min(numbered.start_ms)) as start_at,
    from_ms(max(numbered.end_ms)) as end_at,
    (max(numbered.end_ms) - min(numbered.start_ms)) / 1000.0 as interval_s,
    bool_or(numbered.is_amount) as is_amount,
    sum(numbered.gpu_ms)::bigint as gpu_ms,
    sum(numbered.cost) as cost
from numbered
inner join reference.gpu_second_categories as categories using (category)
left join reference.phases as phases using (phase)
left join intermediate.int_gpu_names as units using (gpu_uuid)
group by
    numbered.cluster, numbered.node, numbered.gpu_uuid, numbered.gpu_instance, numbered.run_key,
    numbered.category, numbered.blame, numbered.island
having sum(numbered.gpu_ms) > 0
