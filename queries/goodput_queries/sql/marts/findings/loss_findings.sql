-- Losses of the scope that are worth a look, as findings, with the GPU time that is recoverable.
-- grain: rule, cluster, node, gpu_uuid, run_key, team
-- access: team
-- skip_if_empty: marts.loss_claims
-- gpu_ms, cost: lost in the window; share_ratio: of the time it is a share of
-- cause, what_to_do: as in marts.loss_claims; of a late rank the evidence of its longest episode
-- is_over: newer evidence shows that the state has ended: its GPUs are in another category, or its run has ended
-- back_ms: recoverable GPU time: all of it; of blocking saves what the best interval (Young 1974) saves, less the work that
--  failures then cost; of start-up what is over the median of the cluster; of free GPUs those that are free in every hour;
--  of serving engines pauses long enough to scale down; 0: nothing, since it is no loss
-- back_low_ms: the part that is certainly recoverable; back_high_ms: all of it
with losses as materialized (select * from marts.loss_claims),

sizes as (
    select run_key, max(gpus) as gpus, max(coalesce(end_ms, forever_ms())) as end_ms
    from intermediate.int_attempts
    where of_teams(team)
    group by run_key
),

claims as (
    select
        claims.*,
        claims.gpu_ms / nullif(claims.base_ms, 0) as share_ratio,
        rules.returns,
        rules.is_state
        and (claims.until_ms < claims.subject_ms or coalesce(sizes.end_ms < scope_end(clusters.as_of_ms), false)) as is_over,
        sizes.gpus
    from losses as claims
    inner join reference.finding_rules as rules using (rule)
    inner join intermediate.int_clusters as clusters using (cluster)
    left join sizes using (run_key)
    where is_large_loss(
        claims.rule, rules.kind, rules.least_share, claims.gpu_ms, greatest(claims.gpu_ms / nullif(claims.base_ms, 0), claims.run_share_ratio),
        claims.base_ms, sizes.gpus
    )
),

starts as (
    select
        claims.cluster,
        median(claims.gpu_ms / claims.cases / sizes.gpus) as median_ms
    from losses as claims
    inner join sizes using (run_key)
    where claims.rule = 'slow_start'
    group by claims.cluster
),

-- GPUs that are free in every hour of the window; none where jobs waited in it
steady as (
    select hours.cluster, floor(min(hours.gpus))::bigint as gpus, any_value(hours.covered_ms) as covered_ms
    from (
        select
            clusters.cluster,
            hour_ms,
            sum(coalesce(parts.gpu_ms, 0)) / any_value(
                least(hour_ms + one_hour_ms(), scope_end(clusters.as_of_ms)) - greatest(hour_ms, scope_start(clusters.first_ms))
            ) as gpus,
            any_value(scope_end(clusters.as_of_ms) - scope_start(clusters.first_ms)) as covered_ms
        from intermediate.int_clusters as clusters
        cross join lateral unnest(range(
            scope_start(clusters.first_ms) // one_hour_ms() * one_hour_ms(), scope_end(clusters.as_of_ms), one_hour_ms()
        )) as hours (hour_ms)
        left join (
            select cluster, first_ms // one_hour_ms() * one_hour_ms() as hour_ms, gpu_ms
            from marts.loss_parts
            where rule = 'idle_without_demand'
        ) as parts using (cluster, hour_ms)
        where
            clusters.cluster in (select cluster from claims where returns = 'steady')
            and clusters.cluster not in (select cluster from losses where rule = 'idle_with_demand')
        group by clusters.cluster, hour_ms
    ) as hours
    group by hours.cluster
),

paused as (
    select run_key, sum(pause_ms * gpus)::bigint as gpu_ms
    from marts.serving_engines
    where run_key in (select run_key from claims where returns = 'pauses')
    group by run_key
),

saving as (
    select
        run_key,
        save_s,
        interval_s,
        -- failures of the run, else those of its cluster by GPU time
        case
            when failures > 0 then run_s / failures
            when cluster_failures > 0 then cluster_gpu_ms / 1000.0 / cluster_failures / gpus
        end as failure_s,
        greatest(interval_s, sqrt(2 * save_s * failure_s)) as best_s
    from marts.checkpointing
),

-- 0 where there is no interval or no failure to go by
gains as (
    select
        run_key,
        -- share of the saves that go, less half an interval of work for each failure, in parts of the saves' time
        greatest(
            0,
            1 - (interval_s + save_s) / (best_s + save_s)
            - (best_s - interval_s) / 2 / failure_s * (interval_s + save_s) / nullif(save_s, 0)
        ) as back_ratio
    from saving
)

select
    claims.* exclude (subject_ms, sure_ms, cause, base_ms, run_share_ratio, returns, gpus),
    coalesce(
        claims.cause, late.evidence, case when claims.returns = 'steady' then counted(steady.gpus, 'GPU') || ' free in every hour' end
    ) as cause,
    loss_confidence(claims.rule, claims.gpu_ms, claims.sure_ms) as confidence,
    case claims.returns
        when 'all' then claims.gpu_ms
        when 'interval' then round(claims.gpu_ms * coalesce(gains.back_ratio, 0))
        when 'excess' then round(greatest(0, claims.gpu_ms - starts.median_ms * claims.cases * claims.gpus))
        when 'pauses' then least(claims.gpu_ms, coalesce(paused.gpu_ms, 0))
        when 'steady' then least(claims.gpu_ms, coalesce(steady.gpus * steady.covered_ms, 0))
        else 0
    end::bigint as back_ms,
    case claims.returns
        when 'all' then claims.sure_ms
        when 'pauses' then least(claims.sure_ms, coalesce(paused.gpu_ms, 0))
        else 0
    end::bigint as back_low_ms,
    case claims.returns when 'none' then 0 else claims.gpu_ms end::bigint as back_high_ms
from claims
left join (
    select run_key, gpu_uuid, 'slow_rank' as rule, arg_max(evidence, imposed_wait_gpu_s) as evidence
    from marts.stragglers
    group by run_key, gpu_uuid
) as late using (rule, run_key, gpu_uuid)
left join starts using (cluster)
left join steady using (cluster)
left join gains using (run_key)
left join paused using (run_key)
