-- GPUs that differ from their gang, and nodes that differ from others of their model, for a long time: distance from the
-- median of the same ten minutes, in median absolute deviations as standard deviations. A gang has at least threshold
-- peer_min_gpus GPUs of the model, a cluster peer_min_nodes nodes of it. Nodes are compared over all racks, since a rack
-- has too few, and may be hot as a whole.
-- grain: none (a GPU may be above its peers for a time, and below them later)
-- skip_if_empty: intermediate.int_held_bins, intermediate.int_node_outliers
-- rule: peer_sm_active, peer_sm_clock, peer_power (GPUs: the first that applies), peer_temperature; node_idle_power,
--  node_temperature (nodes)
-- start_at, end_at: first and last of the ten minutes that differ
-- gpu_ms: time in which it differed; cost: null, since that time is not lost as such
-- value: mean over this time, in the unit of the metric
-- peers: GPUs or nodes compared with; bins: ten minutes that differ
-- score: median distance in robust standard deviations; of temperature also that of its change from what is usual
-- confidence: Likely; it says that it differs, not why
with held as (
    select
        cluster, node, job_run_key, gang, gpu_uuid, start_ms,
        power_w::double as power_w,
        sm_clock_hz / 1e6 as sm_clock_mhz,
        case when use_metric = 'SM active' then use_ratio end as sm_active_ratio,
        gpu_temperature_c::double as gpu_temperature_c
    from intermediate.int_held_bins
    where not is_starting
),

-- a GPU is far from the median of its gang only where the gang itself is that wide, which is cheaper to see
wide as (
    select gang, start_ms
    from held
    group by gang, start_ms
    having
        count(*) >= threshold('peer_min_gpus')
        and (
            max(power_w) - min(power_w) >= threshold('peer_power_w')
            or max(sm_clock_mhz) - min(sm_clock_mhz) >= threshold('peer_sm_clock_mhz')
            or max(sm_active_ratio) - min(sm_active_ratio) >= threshold('peer_sm_active_ratio')
            or max(gpu_temperature_c) - min(gpu_temperature_c) >= threshold('peer_temperature_c')
        )
),

medians as materialized (
    select
        gang,
        start_ms,
        count(*) as peers,
        median(columns(['power_w', 'sm_clock_mhz', 'sm_active_ratio', 'gpu_temperature_c']))
    from held
    semi join wide using (gang, start_ms)
    group by gang, start_ms
),

far as (
    select
        held.*,
        medians.peers,
        unnest([
            {'rule': 'peer_power', 'value': held.power_w, 'peer_value': medians.power_w, 'least': threshold('peer_power_w')},
            {
                'rule': 'peer_sm_clock', 'value': held.sm_clock_mhz, 'peer_value': medians.sm_clock_mhz,
                'least': threshold('peer_sm_clock_mhz')
            },
            {
                'rule': 'peer_sm_active', 'value': held.sm_active_ratio, 'peer_value': medians.sm_active_ratio,
                'least': threshold('peer_sm_active_ratio')
            },
            {
                'rule': 'peer_temperature', 'value': held.gpu_temperature_c, 'peer_value': medians.gpu_temperature_c,
                'least': threshold('peer_temperature_c')
            }
        ], max_depth := 2)
    from held
    inner join medians using (gang, start_ms)
    where
        abs(held.power_w - medians.power_w) >= threshold('peer_power_w')
        or abs(held.sm_clock_mhz - medians.sm_clock_mhz) >= threshold('peer_sm_clock_mhz')
        or abs(held.sm_active_ratio - medians.sm_active_ratio) >= threshold('peer_sm_active_ratio')
        or abs(held.gpu_temperature_c - medians.gpu_temperature_c) >= threshold('peer_temperature_c')
),

-- what stands still is of an earlier time, and has a finding of its own: it says nothing of the GPU now
stale as (
    select
        gpu_uuid,
        case rule
            when 'standing_power' then 'peer_power'
            when 'standing_temperature' then 'peer_temperature'
            when 'stuck_profiling' then 'peer_sm_active'
        end as rule,
        epoch_ms(start_at) as first_ms,
        epoch_ms(end_at) as last_ms
    from marts.standing_counters
    where rule in ('frozen_series', 'standing_power', 'standing_temperature', 'stuck_profiling')
),

-- cooler than the others, or faster, is no fault
differs as materialized (
    select *
    from far
    where
        case
            when rule = 'peer_sm_clock' then peer_value - value
            when rule = 'peer_temperature' then value - peer_value
            else abs(value - peer_value)
        end >= least
        and not exists (
            select 1
            from stale
            where
                stale.gpu_uuid = far.gpu_uuid
                -- all values of a frozen series are old
                and coalesce(stale.rule, far.rule) = far.rule
                and far.start_ms >= stale.first_ms
                and far.start_ms < stale.last_ms
        )
),

-- places in an air stream differ for good: what is usual for a GPU of a gang is its median distance from the others
usual as (
    select job_run_key, gpu_uuid, median(gpu_temperature_c - median_c) as usual_c
    from (
        select
            job_run_key, gpu_uuid, gpu_temperature_c,
            count(*) over peer_group as peers,
            median(gpu_temperature_c) over peer_group as median_c
        from held
        semi join (from differs where rule = 'peer_temperature') as warm using (job_run_key)
        window peer_group as (partition by job_run_key, gang, start_ms)
    )
    where peers >= threshold('peer_min_gpus')
    group by job_run_key, gpu_uuid
),

deviations as (
    select
        held.gang,
        held.start_ms,
        1.4826 * median(abs(held.power_w - medians.power_w)) as power_w,
        1.4826 * median(abs(held.sm_clock_mhz - medians.sm_clock_mhz)) as sm_clock_mhz,
        1.4826 * median(abs(held.sm_active_ratio - medians.sm_active_ratio)) as sm_active_ratio,
        1.4826 * median(abs(held.gpu_temperature_c - medians.gpu_temperature_c)) as gpu_temperature_c,
        median(held.gpu_temperature_c - usual.usual_c) as placed_c,
        1.4826 * mad(held.gpu_temperature_c - usual.usual_c) as placed_deviation_c
    from held
    inner join medians using (gang, start_ms)
    semi join differs using (gang, start_ms)
    left join usual on usual.job_run_key = held.job_run_key and usual.gpu_uuid = held.gpu_uuid
    group by held.gang, held.start_ms
),

scored as (
    select
        differs.*,
        greatest(
            abs(differs.value - differs.peer_value) / greatest(
                case differs.rule
                    when 'peer_power' then deviations.power_w
                    when 'peer_sm_clock' then deviations.sm_clock_mhz
                    when 'peer_sm_active' then deviations.sm_active_ratio
                    else deviations.gpu_temperature_c
                end,
                -- gangs in step have no spread at all
                differs.least / threshold('peer_deviations')
            ),
            -- null, and so left out, of the other rules
            case when differs.rule = 'peer_temperature' then
                (differs.value - usual.usual_c - deviations.placed_c)
                / greatest(deviations.placed_deviation_c, differs.least / threshold('peer_deviations'))
            end
        ) as score
    from differs
    inner join deviations using (gang, start_ms)
    left join usual on usual.job_run_key = differs.job_run_key and usual.gpu_uuid = differs.gpu_uuid
),

numbered as (
    select
        *,
        value < peer_value as is_lower,
        -- the same in ten minutes that follow each other
        start_ms - ten_minutes_ms() * row_number() over (
            partition by rule, job_run_key, gpu_uuid, value < peer_value order by start_ms
        ) as stretch
    from scored
    where score >= threshold('peer_deviations')
),

lasting as (
    select *
    from numbered
    qualify count(*) over (partition by rule, job_run_key, gpu_uuid, is_lower, stretch) >= threshold('peer_min_bins')
),

of_gpus as (
    select
        rule,
        any_value(cluster) as cluster,
        any_value(node) as node,
        gpu_uuid,
        job_run_key,
        is_lower,
        min(start_ms) as first_ms,
        max(start_ms) + ten_minutes_ms() as last_ms,
        count(*) as bins,
        avg(value) as value,
        avg(peer_value) as peer_value,
        max(peers) - 1 as peers,
        median(score) as score
    from lasting
    group by rule, gpu_uuid, job_run_key, is_lower
),

read_bins as (
    select job_run_key, gpu_uuid, count(*) as of_bins from held semi join of_gpus using (job_run_key, gpu_uuid) group by all
),

-- a GPU that waits is also cool and slow: the first of these rules is what differs, the others follow from it
gpu_outliers as (
    select
        of_gpus.rule, of_gpus.cluster, of_gpus.node, of_gpus.gpu_uuid, of_gpus.job_run_key, of_gpus.first_ms, of_gpus.last_ms,
        of_gpus.bins, read_bins.of_bins, of_gpus.value, of_gpus.peer_value, of_gpus.peers, of_gpus.score,
        of_gpus.bins as gpu_bins
    from of_gpus
    inner join read_bins using (job_run_key, gpu_uuid)
    qualify
        of_gpus.rule = 'peer_temperature'
        or row_number() over (
            partition by of_gpus.job_run_key, of_gpus.gpu_uuid, of_gpus.rule = 'peer_temperature'
            order by list_position(['peer_sm_active', 'peer_sm_clock', 'peer_power'], of_gpus.rule), of_gpus.bins desc
        ) = 1
),

found as (
    select * from gpu_outliers
    union all
    select * from intermediate.int_node_outliers
)

select
    found.rule,
    found.cluster,
    found.node,
    found.gpu_uuid,
    found.job_run_key,
    owners.run_key,
    owners.run_id,
    owners.team,
    from_ms(found.first_ms) as start_at,
    from_ms(found.last_ms) as end_at,
    (found.gpu_bins * ten_minutes_ms())::bigint as gpu_ms,
    null::double as cost,
    found.value,
    found.peers::bigint as peers,
    found.bins::bigint as bins,
    found.score,
    'Likely' as confidence,
    case
        when found.rule in ('peer_power', 'node_idle_power') then case
            when found.rule = 'peer_power' then 'power ' else 'power of idle GPUs '
        end || printf('%.0f W, median of the others %.0f W', found.value, found.peer_value)
        when found.rule = 'peer_sm_clock'
            then printf('SM clock %.0f MHz, median of the others %.0f MHz', found.value, found.peer_value)
        when found.rule = 'peer_sm_active'
            then printf('SM active %.1f %%, median of the others %.1f %%', 100 * found.value, 100 * found.peer_value)
        else printf('temperature %.0f °C, median of the others %.0f °C', found.value, found.peer_value)
            || case when found.rule = 'node_temperature' then ' at like power' else '' end
    end
    || ' in ' || found.bins || ' of ' || found.of_bins || ' ten-minute means; ' || found.peers
    || case
        when found.gpu_uuid is null then ' nodes of the model' || coalesce(', rack ' || racks.rack, '')
        else ' GPUs of the job'
    end
    || printf('; %.1f robust standard deviations', found.score) as evidence
from found
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join staging.stg_node_racks as racks on found.cluster = racks.cluster and found.node = racks.node
left join intermediate.int_gpu_names as models using (gpu_uuid)
where in_scope(
    found.cluster, found.node, found.gpu_uuid, models.gpu_model,
    owners.team, owners.user_name, owners.run_key, owners.partition
)
