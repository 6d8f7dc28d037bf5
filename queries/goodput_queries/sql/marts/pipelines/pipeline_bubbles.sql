-- Pipeline bubbles: the share of the forward and backward phase of a step in which a stage computes neither, from the spans of
-- the step in marts.pipeline_timeline. Collectives and the optimizer come after that phase.
-- grain: run_key, stage
-- access: team
-- micro_batches: forward operations of the stage; compute_s: time of its forward and backward operations
-- pipeline_s: from the first forward to the end of the last backward of all stages
-- bubble_ratio: 1 - compute_s / pipeline_s; ideal_bubble_ratio: the same in the ideal step
-- schedule_bubble_ratio: what even stages leave at least: (stages - 1) / (micro_batches + stages - 1)
with spans as (
    select * from marts.pipeline_timeline where operation in ('forward-compute', 'backward-compute')
),

phases as (
    select
        run_key,
        count(distinct stage) as stages,
        max(end_s) - min(start_s) as pipeline_s,
        max(ideal_end_s) - min(ideal_start_s) as ideal_pipeline_s
    from spans
    group by run_key
)

select
    spans.run_key,
    spans.stage,
    count_if(spans.operation = 'forward-compute')::bigint as micro_batches,
    sum(spans.end_s - spans.start_s) as compute_s,
    any_value(phases.pipeline_s) as pipeline_s,
    1 - compute_s / nullif(any_value(phases.pipeline_s), 0) as bubble_ratio,
    1 - sum(spans.ideal_end_s - spans.ideal_start_s) / nullif(any_value(phases.ideal_pipeline_s), 0) as ideal_bubble_ratio,
    (any_value(phases.stages) - 1) / nullif(micro_batches + any_value(phases.stages) - 1, 0) as schedule_bubble_ratio
from spans
inner join phases using (run_key)
group by spans.run_key, spans.stage
