-- Clusters in the database and the time that their evidence covers.
-- grain: cluster
-- access: everyone
-- as_of_at: the latest time in the evidence of any source; "now" of recorded data
-- nodes, gpus, gpu_models: null for who sees some teams only
-- whole_hours_until_at: of the time before it only whole hours are known, since its segments were dropped by age; null: none
with sizes as (
    select
        units.cluster,
        count(distinct units.node) as nodes,
        count(distinct units.gpu_uuid) as gpus,
        list_sort(list(distinct units.gpu_model) filter (where units.gpu_model is not null)) as gpu_models
    from intermediate.int_gpu_units as units
    group by units.cluster
)

select
    clusters.cluster,
    from_ms(clusters.first_ms) as first_at,
    from_ms(clusters.as_of_ms) as as_of_at,
    case when sees_all_teams() then sizes.nodes end as nodes,
    case when sees_all_teams() then sizes.gpus end as gpus,
    case when sees_all_teams() then sizes.gpu_models end as gpu_models,
    (select from_ms(max(kept_from_ms)) from state.kept_from where table_name = 'ledger_segments') as whole_hours_until_at
from intermediate.int_clusters as clusters
inner join sizes using (cluster)
