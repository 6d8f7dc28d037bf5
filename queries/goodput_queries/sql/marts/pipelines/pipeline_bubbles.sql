-- Pipeline bubbles: the share of the forward and backward phase of a step in which a stage computes neither, from the spans of
-- the step in marts.pipeline_timeline. Collectives and the optimizer come after that phase.
-- grain: run_key, stage
-- access: team
-- stage: pipeline stage; micro_batches: forward operations of the stage; compute_s: time of its forward and backward operations
-- pipeline_s: from the first forward to the end of the last backward of all stages
-- bubble_ratio: 1 - compute_s / pipeline_s; ideal_bubble_ratio: the same in the ideal step
-- schedule_bubble_ratio: what even stages leave at least: (stages - 1) / (micro_batches + stages - 1)
select
    run_key,
    stage,
    count_if(operation = 'forward-compute')::bigint as micro_batches,
    sum(end_s - start_s) as compute_s,
    max(max(end_s)) over run - min(min(start_s)) over run as pipeline_s,
    1 - compute_s / nullif(pipeline_s, 0) as bubble_ratio,
    1 - sum(ideal_end_s - ideal_start_s) / nullif(max(max(ideal_end_s)) over run - min(min(ideal_start_s)) over run, 0)
        as ideal_bubble_ratio,
    (count(*) over run - 1) / nullif(micro_batches + count(*) over run - 1, 0) as schedule_bubble_ratio
from marts.pipeline_timeline
where operation in ('forward-compute', 'backward-compute')
group by run_key, stage
window run as (partition by run_key)
