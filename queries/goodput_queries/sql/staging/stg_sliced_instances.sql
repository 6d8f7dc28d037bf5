-- Profiles of which a node offers Kubernetes more MIG instances than a source lists (time slices): each in equal parts.
-- grain: cluster, node, profile
-- parts: of an instance; a surplus that is no multiple of the instances makes none
with offered as (
    select cluster, node, unnest(string_split(gres, ',')) as resource from raw.nodes where source = 'kubernetes'
),

listed as (
    select parts.source, gpus.cluster, gpus.node, parts.profile, count(distinct (gpu_uuid, parts.gpu_instance)) as instances
    from staging.stg_gpu_instances as parts
    inner join (select distinct cluster, node, gpu_uuid from staging.stg_gpus) as gpus using (gpu_uuid)
    where parts.valid_to_ms is null and parts.slices_of is null
    group by all
),

counted as (
    select
        listed.* exclude (source),
        try_cast(split_part(offered.resource, '=', 2) as integer) as slots
    from listed
    inner join offered
        on listed.cluster = coalesce(offered.cluster, 'default')
        and listed.node = offered.node
        and replace(split_part(offered.resource, '=', 1), '_shared', '')
        = 'nvidia_com_mig_' || replace(replace(listed.profile, '.', '_'), '+', '_')
    qualify instances = max(instances) over (partition by listed.cluster, listed.node, listed.profile)
)

select distinct cluster, node, profile, slots // instances as parts
from counted
where slots > instances and slots % instances = 0
