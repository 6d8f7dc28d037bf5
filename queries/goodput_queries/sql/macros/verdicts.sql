-- Whether a loss is large enough to be a finding. share_ratio: of base_ms, the time that it is a share of; gpus: of its run,
-- null of none.
create or replace macro is_large_loss(rule, gpu_ms, share_ratio, base_ms, gpus) as (
    gpu_ms >= threshold('finding_min_ms')
    and (
        share_ratio >= case rule
            when 'slow_start' then threshold('finding_start_share')
            when 'checkpoint_overhead' then threshold('finding_saves_share')
            when 'rank_skew' then threshold('finding_skew_share')
            when 'slow_rank' then threshold('finding_named_share')
            when 'throttled_gpu' then threshold('finding_named_share')
            when 'faulty_gpu' then threshold('finding_named_share')
            when 'hang' then 0
            when 'unclassified_time' then threshold('finding_open_share')
            -- a node is a small share of its cluster
            when 'node_down' then 0
            when 'node_drained' then 0
            else threshold('finding_min_share')
        end
        -- of a large run one end is a small share, however much is lost
        or (
            rule in ('infrastructure_failure', 'job_failure', 'preempted', 'time_limit')
            and gpu_ms >= threshold('finding_warning_ms')
        )
    )
    -- of a short run the start is always a large share
    and (rule <> 'slow_start' or base_ms >= threshold('finding_start_min_ms') * gpus)
);

-- A loss is a warning from a size on.
create or replace macro loss_severity(rule_severity, gpu_ms) as (
    case when rule_severity = 'warning' and gpu_ms < threshold('finding_warning_ms') then 'info' else rule_severity end
);

-- How sure a loss is; sure_ms: the part that is certainly recoverable.
create or replace macro loss_confidence(rule, gpu_ms, sure_ms) as (
    case
        when rule = 'unclassified_time' then 'Not confirmed'
        when sure_ms >= gpu_ms and rule not in ('idle_allocation', 'gaps_between_steps') then 'Confirmed'
        else 'Likely'
    end
);
