-- Sudden falls of the use of a running job that stay: the median of its GPUs in ten minutes against the hour before. Use is
-- SM activity (else engine activity, else utilisation), or power. A fall that the job declares, or that comes with
-- start-up, restart or its end, is left out, and so is one to no activity at all: that is idle time of the ledger.
-- grain: rule, job_run_key, start_at
-- access: team
-- skip_if_empty: intermediate.int_held_bins
-- rule: use_drop, power_drop
-- gpu_uuid: of a job run with one GPU; node: of one on a single node
-- start_at: first ten minutes of the low use; end_at: until it was half-way back, or the last reading of the job run
-- before, after: median of the hour before and of the half hour after, ratio or watts
-- gpus: number of GPUs; gpu_ms: their time at the low level; cost: of that, null without a price
-- score: the fall in robust standard deviations of the hour before
-- confidence: Likely; Confirmed where use and power fell together
with bins as materialized (
    select
        job_run_key,
        start_ms,
        any_value(cluster) as cluster,
        case when min(node) = max(node) then min(node) end as node,
        case when count(*) = 1 then any_value(gpu_uuid) end as gpu_uuid,
        count(*) as gpus,
        median(use_ratio)::double as use_ratio,
        median(power_w)::double as power_w,
        coalesce(bool_and(greatest(engine_max_ratio, use_max_ratio) < threshold('idle_share_ratio')), false) as is_idle,
        bool_or(in_place(cluster, node, gpu_uuid, gpu_model)) as is_in_place
    from intermediate.int_held_bins
    where not is_starting
    group by job_run_key, start_ms
),

series as (
    select
        job_run_key, start_ms, gpus, is_idle,
        'use_drop' as rule, use_ratio as value, threshold('drop_use_ratio') as least
    from bins
    union all
    select job_run_key, start_ms, gpus, is_idle, 'power_drop', power_w, threshold('drop_power_w') from bins
),

-- a fall to a part of what it was is in the range of the job, which is cheaper to see
moving as (
    select rule, job_run_key
    from series
    group by rule, job_run_key
    having
        max(value) - min(value) >= any_value(least)
        and min(value) <= threshold('drop_share') * max(value)
),

levels as (
    select
        *,
        median(value) over before_it as before,
        1.4826 * mad(value) over before_it as deviation,
        count(value) over before_it as bins_before,
        median(value) over since_then as after,
        max(value) over since_then as highest_after,
        count(value) over since_then as bins_after,
        bool_and(is_idle) over after_the_fall as is_idle_after
    from series
    semi join moving using (rule, job_run_key)
    where value is not null
    window
        before_it as (
            partition by rule, job_run_key order by start_ms range between one_hour_ms() preceding and ten_minutes_ms() preceding
        ),
        since_then as (
            partition by rule, job_run_key order by start_ms range between current row and 1200000 following
        ),
        -- the first ten minutes may have some of the work before the fall
        after_the_fall as (
            partition by rule, job_run_key order by start_ms range between ten_minutes_ms() following and 1200000 following
        )
),

falls as (
    select
        *,
        (before - after) / greatest(deviation, least / threshold('peer_deviations')) as score,
        lag(start_ms) over (partition by rule, job_run_key order by start_ms) as last_fall_ms
    from levels
    where
        bins_before >= 4
        and bins_after = 3
        and not is_idle_after
        and before - after >= greatest(threshold('peer_deviations') * deviation, least)
        and after <= threshold('drop_share') * before
        -- it stays low from its first ten minutes on
        and highest_after <= (before + after) / 2
),

firsts as materialized (
    select
        falls.*,
        (
            select min(levels.start_ms)
            from levels
            where
                levels.rule = falls.rule
                and levels.job_run_key = falls.job_run_key
                and levels.start_ms > falls.start_ms
                and levels.value > (falls.before + falls.after) / 2
        ) as back_ms,
        (
            select max(levels.start_ms) + ten_minutes_ms()
            from levels
            where levels.rule = falls.rule and levels.job_run_key = falls.job_run_key
        ) as last_ms
    from falls
    -- ten minutes later it is the same fall
    where coalesce(start_ms - last_fall_ms > ten_minutes_ms(), true)
),

declared as (
    select
        firsts.rule,
        firsts.job_run_key,
        firsts.start_ms,
        sum(
            least(coalesce(timeline.end_ms, forever_ms()), firsts.start_ms + 1800000)
            - greatest(timeline.start_ms, firsts.start_ms)
        ) as declared_ms
    from firsts
    inner join intermediate.int_run_timeline as timeline
        on firsts.job_run_key = timeline.job_run_key
        and timeline.start_ms < firsts.start_ms + 1800000
        and coalesce(timeline.end_ms, forever_ms()) > firsts.start_ms
    where timeline.category in (
        'checkpoint_save', 'restore', 'data_stall', 'other_declared', 'startup', 'gang_wait', 'suspended', 'teardown'
    )
    group by firsts.rule, firsts.job_run_key, firsts.start_ms
),

kept as (
    select firsts.*, coalesce(firsts.back_ms, firsts.last_ms) as until_ms
    from firsts
    left join declared using (rule, job_run_key, start_ms)
    where coalesce(declared.declared_ms, 0) < 900000
),

agreed as (
    select job_run_key, start_ms
    from kept
    group by job_run_key, start_ms
    having count(distinct rule) = 2
)

select
    kept.rule,
    bins.cluster,
    bins.node,
    bins.gpu_uuid,
    kept.job_run_key,
    owners.run_key,
    owners.run_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    from_ms(kept.start_ms) as start_at,
    from_ms(kept.until_ms) as end_at,
    kept.before,
    kept.after,
    kept.gpus,
    (kept.gpus * (kept.until_ms - kept.start_ms))::bigint as gpu_ms,
    kept.gpus * (kept.until_ms - kept.start_ms) / 3600000.0 * prices.price_per_gpu_h as cost,
    kept.score,
    case when agreed.job_run_key is not null then 'Confirmed' else 'Likely' end as confidence,
    case
        when kept.rule = 'use_drop'
            then printf('use of the GPUs fell from %.0f %% to %.0f %%', 100 * kept.before, 100 * kept.after)
        else printf('power of a GPU fell from %.0f W to %.0f W', kept.before, kept.after)
    end
    || printf(
        ' (medians of the hour before and the half hour after), and stayed for %.0f min; ',
        (kept.until_ms - kept.start_ms) / 60000
    )
    || case
        when coalesce(declared.declared_ms, 0) > 0
            then printf('the job declared %.0f s of the half hour', declared.declared_ms / 1000)
        else 'the job declared nothing for it'
    end as evidence
from kept
inner join bins using (job_run_key, start_ms)
left join declared using (rule, job_run_key, start_ms)
left join agreed using (job_run_key, start_ms)
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_job_run_prices as prices using (job_run_key)
where
    of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
    and bins.is_in_place
