-- Jobs of the scope that waited while GPUs that they could have used were free: behind the time with demand.
-- grain: job_run_key
-- access: team
-- job_id, job_name, user_name, team, partition: of the job
-- reason: why it waited, by its last listing; null: no source says
-- gpus: number of GPUs that it asks for; gpu_type: their type; null: any
-- requested_nodes: the only nodes on which it runs; null: any
-- since_at, until_at: its waits in the window, first to last; is_waiting: it still waits at the end of the window
-- waited_s: time of its waits in the window in hours that have such free GPUs
-- free_gpu_ms: GPU time with demand of these hours on nodes that it could use; the same time counts for each job that waited
with free as (
    select cluster, node, hour_ms, sum(gpu_ms)::bigint as gpu_ms
    from marts.ledger_blamed_by_node
    where category = 'idle_with_demand' and gpu_ms > 0
    group by cluster, node, hour_ms
),

waits as (
    select
        runs.*,
        scope_start(runs.wait.start_ms) as from_ms,
        scope_end(coalesce(runs.wait.end_ms, clusters.as_of_ms)) as to_ms,
        coalesce(runs.wait.end_ms >= scope_end(clusters.as_of_ms), true) as is_waiting,
        -- of one class are jobs that could use the same nodes
        dense_rank() over (
            order by
                runs.cluster, runs.partition, lower(runs.gpu_type_requested), runs.requested_nodes, runs.excluded_nodes,
                runs.feature_sets
        ) as class
    from (select *, unnest(waits) as wait from intermediate.int_job_runs) as runs
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        runs.cluster in (select cluster from free)
        and in_window(runs.wait.start_ms, runs.wait.end_ms)
        and of_owner(runs.team, runs.user_name, null, runs.partition)
),

classes as (
    select distinct
        class,
        cluster,
        unnest(string_split(partition, ',')) as partition,
        lower(gpu_type_requested) as gpu_type,
        requested_nodes,
        excluded_nodes,
        feature_sets
    from waits
),

usable as (
    select distinct classes.class, nodes.cluster, nodes.node
    from classes
    inner join intermediate.int_node_partitions as nodes
        on classes.cluster = nodes.cluster and classes.partition = nodes.partition
    where
        can_use_node(nodes.node, nodes.features, classes.requested_nodes, classes.excluded_nodes, classes.feature_sets)
        and (
            classes.gpu_type is null
            or nodes.gpu_model is null
            or regexp_matches(classes.gpu_type, '[1-7]g\.[0-9]+gb')
            or is_model(nodes.gpu_model, classes.gpu_type)
        )
),

free_of_classes as (
    select usable.class, free.hour_ms, sum(free.gpu_ms)::bigint as gpu_ms
    from usable
    inner join free using (cluster, node)
    group by usable.class, free.hour_ms
)

select
    waits.job_run_key,
    waits.cluster,
    any_value(columns(['job_id', 'job_name', 'user_name', 'team', 'partition', 'requested_nodes'])),
    any_value(waits.wait_reason) as reason,
    any_value(waits.gpus_requested) as gpus,
    any_value(waits.gpu_type_requested) as gpu_type,
    from_ms(min(waits.from_ms)) as since_at,
    from_ms(max(waits.to_ms)) as until_at,
    bool_or(waits.is_waiting) as is_waiting,
    sum(
        least(waits.to_ms, free.hour_ms + one_hour_ms()) - greatest(waits.from_ms, free.hour_ms)
    ) / 1000.0 as waited_s,
    sum(free.gpu_ms)::bigint as free_gpu_ms
from waits
inner join free_of_classes as free
    on waits.class = free.class
    and waits.from_ms < free.hour_ms + one_hour_ms()
    and waits.to_ms > free.hour_ms
where waits.to_ms > waits.from_ms
group by waits.job_run_key, waits.cluster
