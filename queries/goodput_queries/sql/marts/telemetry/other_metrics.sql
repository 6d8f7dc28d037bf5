-- Metrics that the scope's GPUs report beside those with a column of their own, with their meaning.
-- grain: metric
-- evaluated: first
-- meaning, unit, kind: null where the metric is not in the catalogue
-- kind: gauge, rate, counter (only its increase says something), latch (keeps its last code), window (a sliding count)
-- good_range: values of a sound GPU; any: they follow the work, or say nothing of the GPU
-- gpus, samples: number of GPUs that report it and of samples in the window
-- lowest, highest: values in the window
with gpus as (
    select distinct gpu_uuid from marts.gpus
),

found as (
    select
        metric,
        count(distinct gpu_uuid) as gpus,
        count(*) as samples,
        min(value) as lowest,
        max(value) as highest,
        max(ts) as last_at
    from staging.stg_gpu_samples_other
    semi join gpus using (gpu_uuid)
    where
        ts >= from_ms(scope_from_ms())
        and ts < scope_to_at()
    group by metric
)

select
    found.metric,
    catalogue.meaning,
    catalogue.unit,
    catalogue.kind,
    catalogue.good_range,
    found.* exclude (metric)
from found
left join reference.other_gpu_metrics as catalogue using (metric)
