-- Models that each engine served in each ten minutes of this pass, with the tokens that it generated.
-- grain: engine_id, model, cell_ms
-- cell_ms: start of the ten minutes
-- tokens: null: no counter says so
with samples as (
    select
        engines.engine_id,
        samples.model,
        samples.source,
        samples.ts_ms,
        max(samples.value) filter (samples.metric = 'generation_tokens') as generated
    from staging.stg_serving_samples as samples
    inner join temp.serving_engines as engines using (cluster, endpoint, engine)
    where
        samples.ts >= from_ms(build_from_ms() - threshold('serving_gap_max_ms')::bigint)
        and samples.ts < from_ms(build_to_ms())
        and samples.metric in ('generation_tokens', 'requests_running')
    group by all
),

followed as (
    select
        *,
        case
            when ts_ms - lag(ts_ms) over in_order <= threshold('serving_gap_max_ms')
                then counter_increase(generated, lag(generated) over in_order)
        end as tokens
    from samples
    window in_order as (partition by engine_id, model, source order by ts_ms)
)

select engine_id, model, cell_ms, max(tokens) as tokens
from (
    select engine_id, model, source, ts_ms // ten_minutes_ms() * ten_minutes_ms() as cell_ms, sum(tokens) as tokens
    from followed
    where ts_ms >= build_from_ms()
    group by all
)
group by all
