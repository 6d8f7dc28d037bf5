-- Attributes of nodes that decide whether a pending job could run there: partitions, GPU models, features, CPUs.
-- grain: cluster, node, partition, gpu_model
-- partition: null: in none that is known
-- features: null: no source names them
-- is_demand_known: the accounting of the cluster says since when jobs were eligible
-- materialised: full, since each pass over some hours joins it
-- change_tracking: all
with nodes as (
    select distinct cluster, node, lower(gpu_model) as gpu_model from intermediate.int_gpu_units
),

partitions as (
    select distinct coalesce(cluster, 'default') as cluster, node, unnest(partitions) as partition
    from staging.stg_nodes
    union
    -- where no source lists a partition's nodes, those that ran its jobs are certainly in it
    select distinct cluster, unnest(nodes) as node, partition
    from intermediate.int_job_runs
    where cluster not in (select cluster from staging.stg_nodes where cluster is not null and partitions is not null)
),

sizes as (
    select coalesce(cluster, '') as cluster, node, max(cpus) as cpus, max(features) as features
    from staging.stg_nodes
    group by all
)

select
    nodes.*,
    partitions.partition,
    sizes.cpus,
    sizes.features,
    nodes.cluster in (
        select cluster from intermediate.int_job_runs
        where eligible_ms is not null and ownership in ('scheduler', 'label')
    ) as is_demand_known
from nodes
left join partitions using (cluster, node)
left join sizes on nodes.node = sizes.node and sizes.cluster in (nodes.cluster, '')
