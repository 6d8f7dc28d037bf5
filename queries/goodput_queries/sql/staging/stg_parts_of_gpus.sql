-- Job runs of a scheduler that were allocated a part of a GPU: shards (gres/shard) or a percentage of MPS (gres/mps).
-- grain: cluster, job_id_raw, submit_ms
-- gpus: GPUs that the parts make; of shards null where no source says how many a GPU of the node has
-- slices, slices_of: the parts, and how many a GPU of the node has; is_of_one_gpu: they fit on one GPU of one node
-- gpu_uuid: null: no source says of which GPU
with named as (
    select
        cluster,
        job_id_raw,
        submit_at,
        max(columns(['node', 'node_count', 'shards', 'mps', 'gpu_uuid', 'gpu_count']))
    from (
        -- one source may name a GPU in one listing and not in another
        select
            source, cluster, job_id_raw, submit_at,
            gpu_uuid is null as is_unnamed,
            min(node) as node,
            count(distinct node) as node_count,
            sum(amount) filter (kind = 'shard') as shards,
            sum(amount) filter (kind = 'mps') as mps,
            min(gpu_uuid) as gpu_uuid,
            count(distinct gpu_uuid) as gpu_count
        from raw.gpu_parts
        group by all
    )
    group by all
),

asked as (
    select
        runs.cluster,
        runs.job_id_raw,
        to_ms(runs.submit_at) as submit_ms,
        max(coalesce(runs.nodes[1], named.node)) as node,
        max(coalesce(len(runs.nodes), named.node_count)) as node_count,
        max(coalesce(
            nullif(regexp_extract(alloc_tres, 'gres/shard(?::[^=,]+)?=([0-9]{1,9})', 1), '')::bigint, named.shards
        )) as shards,
        max(coalesce(
            nullif(regexp_extract(alloc_tres, 'gres/mps(?::[^=,]+)?=([0-9]{1,9})', 1), '')::bigint, named.mps
        )) as mps,
        max(named.gpu_uuid) as gpu_uuid,
        max(coalesce(named.gpu_count, 0)) as gpu_count
    from raw.job_runs as runs
    left join named using (cluster, job_id_raw, submit_at)
    where
        start_at is not null
        and coalesce(gpus, 0) = 0
        and (regexp_matches(alloc_tres, 'gres/(shard|mps)[:=]') or named.job_id_raw is not null)
    group by all
),

-- what a node has of each, as Slurm prints it: gpu:a40:4(S:0-1),shard:a40:16(S:0-1)
nodes as (
    select
        node,
        max(list_sum(regexp_extract_all(gres, '(?:^|,)gpu(?::[^:,(]+)?:([0-9]{1,6})', 1)::bigint[])) as gpus,
        max(list_sum(regexp_extract_all(gres, '(?:^|,)shard(?::[^:,(]+)?:([0-9]{1,6})', 1)::bigint[])) as shards,
        max(list_sum(regexp_extract_all(gres, '(?:^|,)mps(?::[^:,(]+)?:([0-9]{1,6})', 1)::bigint[])) as mps
    from raw.nodes
    where gres is not null
    group by node
)

select
    *,
    slices / slices_of as gpus,
    coalesce(node_count = 1 and gpu_count <= 1 and slices between 1 and slices_of and slices_of = floor(slices_of), false) as is_of_one_gpu
from (
    select
        asked.* exclude (shards, mps),
        coalesce(asked.shards, asked.mps) as slices,
        case
            when asked.shards is not null then nodes.shards / nullif(nodes.gpus, 0)
            -- without a count Slurm gives each GPU 100
            else coalesce(nodes.mps / nullif(nodes.gpus, 0), 100)
        end as slices_of
    from asked
    left join nodes using (node)
)
