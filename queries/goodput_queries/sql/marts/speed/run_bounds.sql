-- What the scope's runs are bound by, as far as measured, in the scope's window: the first of these that holds is named.
-- Input: data stalls; communication: exposed transfers and waits for other ranks; power or heat: a lowered clock; compute
-- and memory bandwidth: busy units of the GPU; host: idle GPUs on nodes with busy processors. Readings are means over
-- allocated time: of ten minutes wholly inside it, of single samples where it is shorter than 20 minutes.
-- grain: run_key
-- evaluated: first
-- access: team
-- bound_by: input, communication, power or heat, compute, memory bandwidth, host, outside the GPU (its SMs are idle most of the
--  time, and what they wait for is not measured), unknown
-- is_near: no limit is reached, and the unit of the GPU that is nearest to its own is named
-- data_stall_ratio: of step time with data stalls; communication_ratio: of step time; null: not measured for half of it
-- throttled_ratio: of step time; thermal_ratio, power_cap_ratio: share of the readings with reasons
-- sm_clock_ratio: mean clock / highest clock of the model
-- sm_active_ratio, tensor_active_ratio, dram_active_ratio; other_pipe_active_ratio: the busiest of FP64, FP32, FP16
-- cpu_busy_ratio: of the processors of its nodes
-- sentence: the reason with its number, or what is not measured
with ledger as (
    select
        run_key,
        sum(gpu_ms) filter (where category = 'data_stall') as data_stall_ms,
        sum(gpu_ms) filter (where category in ('exposed_comm', 'straggler_wait')) as communication_ms,
        sum(gpu_ms) filter (where category = 'throttled') as throttled_ms,
        sum(gpu_ms) filter (where category = 'step_unsplit') as unsplit_ms,
        sum(gpu_ms) filter (where is_kept_step(category) and category != 'other_declared') as step_ms
    from marts.run_categories
    group by run_key
),

holds as (
    select
        owners.run_key,
        holds.cluster,
        holds.node,
        holds.gpu_uuid,
        holds.gpu_instance,
        scope_start(holds.start_ms) as start_ms,
        scope_end(coalesce(holds.end_ms, clusters.as_of_ms)) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join intermediate.int_clusters as clusters on holds.cluster = clusters.cluster
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
),

coarse as (
    select
        holds.run_key,
        metrics.gpu_uuid,
        columns(['sm_active_ratio', 'tensor_active_ratio', 'dram_active_ratio']).mean,
        greatest(
            metrics.fp64_active_ratio.mean, metrics.fp32_active_ratio.mean, metrics.fp16_active_ratio.mean
        ) as other_pipe_active_ratio,
        metrics.sm_clock_hz.mean as sm_clock_hz,
        (metrics.clocks_event_reasons.sw_thermal + metrics.clocks_event_reasons.hw_thermal
            + metrics.clocks_event_reasons.hw_slowdown + metrics.clocks_event_reasons.power_brake)
            / nullif(metrics.clocks_event_reasons.n, 0) as thermal_ratio,
        metrics.clocks_event_reasons.power_cap / nullif(metrics.clocks_event_reasons.n, 0) as power_cap_ratio
    from intermediate.int_gpu_metrics as metrics
    inner join holds
        on metrics.gpu_uuid = holds.gpu_uuid
        and metrics.gpu_instance = holds.gpu_instance
        and metrics.start_ms >= holds.start_ms
        and metrics.start_ms + ten_minutes_ms() <= holds.end_ms
    where
        metrics.hour_ms > scope_from_ms() - one_hour_ms()
        and metrics.hour_ms < scope_to_ms()
),

short as (
    select * from holds where end_ms - start_ms < 1200000
),

fine as (
    select
        short.run_key,
        samples.gpu_uuid,
        samples.sm_active_ratio,
        samples.tensor_active_ratio,
        samples.dram_active_ratio,
        greatest(samples.fp64_active_ratio, samples.fp32_active_ratio, samples.fp16_active_ratio)
            as other_pipe_active_ratio,
        samples.sm_clock_hz,
        (samples.clocks_event_reasons & 232 <> 0)::integer as thermal_ratio,
        (samples.clocks_event_reasons & 4 <> 0)::integer as power_cap_ratio
    from staging.stg_gpu_samples as samples
    inner join short
        on samples.gpu_uuid = short.gpu_uuid
        and samples.gpu_instance = short.gpu_instance
        and samples.ts_ms >= short.start_ms
        and samples.ts_ms < short.end_ms
    where
        short.run_key not in (select run_key from coarse)
        and samples.ts >= from_ms(scope_from_ms())
        and samples.ts < scope_to_at()
),

clocks as (
    select gpu_uuid, max(sm_clock_max_hz) as sm_clock_max_hz from staging.stg_gpus group by gpu_uuid
),

telemetry as (
    select
        readings.run_key,
        avg(columns([
            'sm_active_ratio', 'tensor_active_ratio', 'dram_active_ratio', 'other_pipe_active_ratio', 'thermal_ratio',
            'power_cap_ratio'
        ])),
        avg(readings.sm_clock_hz / clocks.sm_clock_max_hz) as sm_clock_ratio
    from (select * from coarse union all select * from fine) as readings
    left join clocks using (gpu_uuid)
    group by readings.run_key
),

nodes as (
    select run_key, cluster, node, min(start_ms) as start_ms, max(end_ms) as end_ms
    from holds
    group by run_key, cluster, node
),

processors as (
    select run_key, avg(busy_s / nullif(total_s, 0)) as cpu_busy_ratio
    from (
        select
            nodes.run_key,
            max(samples.cpu_busy_s) - min(samples.cpu_busy_s) as busy_s,
            max(samples.cpu_total_s) - min(samples.cpu_total_s) as total_s
        from staging.stg_host_samples as samples
        inner join nodes
            on samples.cluster = nodes.cluster and samples.node = nodes.node
            and samples.ts_ms >= nodes.start_ms and samples.ts_ms < nodes.end_ms
        where
            samples.ts >= from_ms(scope_from_ms())
            and samples.ts < scope_to_at()
        group by nodes.run_key, nodes.node, samples.source
    )
    group by run_key
),

measured as (
    select
        ledger.run_key,
        coalesce(ledger.data_stall_ms, 0) / nullif(ledger.step_ms + coalesce(ledger.data_stall_ms, 0), 0)
            as data_stall_ratio,
        case
            when has_program(ledger.step_ms, coalesce(ledger.unsplit_ms, 0))
                then coalesce(ledger.communication_ms, 0) / ledger.step_ms
        end as communication_ratio,
        coalesce(ledger.throttled_ms, 0) / nullif(ledger.step_ms, 0) as throttled_ratio,
        telemetry.* exclude (run_key),
        processors.cpu_busy_ratio
    from ledger
    left join telemetry using (run_key)
    left join processors using (run_key)
),

judged as (
    select
        *,
        case
            when data_stall_ratio >= threshold('bound_data_stall') then 'input'
            when communication_ratio >= threshold('bound_communication') then 'communication'
            when throttled_ratio >= threshold('bound_throttled') or thermal_ratio >= threshold('bound_thermal')
                or (power_cap_ratio >= 0.5 and sm_clock_ratio <= threshold('bound_clock')) then 'power or heat'
            when pipe_ratio >= threshold('bound_pipe') and pipe_ratio >= coalesce(dram_active_ratio, 0) then 'compute'
            when dram_active_ratio >= threshold('bound_dram') then 'memory bandwidth'
            when sm_active_ratio <= threshold('bound_host_sm') and cpu_busy_ratio >= threshold('bound_host_cpu') then 'host'
            when sm_active_ratio <= threshold('bound_host_sm') then 'outside the GPU'
            when near_ratio >= threshold('bound_near') and near_ratio = pipe_ratio / threshold('bound_pipe') then 'compute'
            when near_ratio >= threshold('bound_near') then 'memory bandwidth'
            else 'unknown'
        end as bound_by,
        bound_by in ('compute', 'memory bandwidth') and near_ratio < 1 as is_near
    from (
        select
            *,
            greatest(tensor_active_ratio, other_pipe_active_ratio) as pipe_ratio,
            greatest(pipe_ratio / threshold('bound_pipe'), dram_active_ratio / threshold('bound_dram')) as near_ratio
        from measured
    )
)

select
    * exclude (pipe_ratio, near_ratio, is_near),
    coalesce(is_near, false) as is_near,
    case bound_by
        when 'input' then format('{:.0f} % of step time is waiting for input.', 100 * data_stall_ratio)
        when 'communication'
            then format('{:.0f} % of step time is communication or waiting for other ranks.', 100 * communication_ratio)
        when 'power or heat' then case
            when throttled_ratio >= threshold('bound_throttled')
                then format('{:.0f} % of step time was lost to throttling.', 100 * throttled_ratio)
            when thermal_ratio >= threshold('bound_thermal')
                then format('{:.0f} % of readings have a slowdown reason.', 100 * thermal_ratio)
            else format(
                'Clocks are at {:.0f} % of their maximum, and {:.0f} % of readings are at the power cap.',
                100 * sm_clock_ratio, 100 * power_cap_ratio
            )
        end
        when 'compute' then format(
            '{} active {:.0f} % of the time.',
            case when tensor_active_ratio >= coalesce(other_pipe_active_ratio, 0) then 'Tensor cores are'
                else 'An arithmetic pipe is' end,
            100 * pipe_ratio
        )
        when 'memory bandwidth' then format('GPU memory is active {:.0f} % of the time.', 100 * dram_active_ratio)
        when 'outside the GPU' then format(
            'SMs are active {:.0f} % of the time; what they wait for is not measured.', 100 * sm_active_ratio
        )
        when 'host' then format(
            'SMs are active {:.0f} % of the time, and processors {:.0f} %.', 100 * sm_active_ratio, 100 * cpu_busy_ratio
        )
        else case
            when sm_active_ratio is null and communication_ratio is null
                then 'Neither profiling metrics of its GPUs nor its communication are measured.'
            when sm_active_ratio is null then 'Profiling metrics of its GPUs are not measured.'
            else 'No limit is reached'
                || case when communication_ratio is null then '; communication is not measured' else '' end
                || case when cpu_busy_ratio is null then '; processors are not measured' else '' end || '.'
        end
    end
    || case
        when is_near is not true then ''
        when communication_ratio is null then ' That is nearest to a limit; communication is not measured.'
        else ' That is nearest to a limit.'
    end as sentence
from judged
