-- GPUs that a node lists as used (GresUsed) while one job run alone was on it, for job runs whose GPUs no source names.
-- grain: cluster, job_id_raw, submit_at, node, slurm_index
-- slurm_index: null with gpus: only their number is known
with used as (
    select nodes.* replace (coalesce(nodes.cluster, known.cluster) as cluster)
    from raw.nodes as nodes
    left join staging.stg_node_clusters as known using (node)
    where
        nodes.gpus_used > 0
        and nodes.observed_at is not null
        and exists (select 1 from raw.job_runs where gpus is null and start_at is not null)
),

running as (
    select cluster, job_id_raw, submit_at, gpus, start_at, coalesce(end_at, 'infinity'::timestamp) as end_at, unnest(nodes) as node
    from raw.job_runs
    where
        start_at <= (select max(observed_at) from used)
        and coalesce(end_at, 'infinity'::timestamp) > (select min(observed_at) from used)
),

alone as (
    select
        used.cluster, used.node, used.used_indices, used.gpus_used, used.load_sequence,
        any_value(running.job_id_raw) as job_id_raw, any_value(running.submit_at) as submit_at
    from used
    inner join running
        on used.cluster = running.cluster
        and used.node = running.node
        and used.observed_at >= running.start_at
        and used.observed_at < running.end_at
    group by all
    having count(*) = 1 and bool_and(running.gpus is null)
)

select
    cluster, job_id_raw, submit_at, node, 'gres_used' as method, load_sequence,
    unnest(coalesce(used_indices, [null::integer])) as slurm_index,
    case when used_indices is null then gpus_used end as gpus
from alone
anti join raw.holds using (cluster, job_id_raw, submit_at)
