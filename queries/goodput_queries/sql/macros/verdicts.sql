-- Whether a loss is large enough to be a finding. share_ratio: of base_ms, the time that it is a share of; least_share, kind: of
-- its rule; gpus: of its run, null of none.
create or replace macro is_large_loss(rule, kind, least_share, gpu_ms, share_ratio, base_ms, gpus) as (
    gpu_ms >= threshold('finding_min_ms')
    -- of a large run one end is a small share, however much is lost
    and (share_ratio >= least_share or (kind = 'failures' and gpu_ms >= threshold('finding_warning_ms')))
    -- of a short run the start is always a large share
    and (rule <> 'slow_start' or base_ms >= threshold('finding_start_min_ms') * gpus)
);

-- A loss is a ticket from a size on.
create or replace macro loss_severity(rule_severity, gpu_ms) as (
    case when rule_severity = 'ticket' and gpu_ms < threshold('finding_warning_ms') then 'note' else rule_severity end
);

-- How sure a loss is; sure_ms: the part that is certainly recoverable.
create or replace macro loss_confidence(rule, gpu_ms, sure_ms) as (
    case
        when rule = 'unclassified_time' then 'Not confirmed'
        when sure_ms >= gpu_ms and rule not in ('idle_allocation', 'gaps_between_steps') then 'Confirmed'
        else 'Likely'
    end
);

-- Rank of a severity of findings: 1 is the most severe.
create or replace macro severity_rank(severity) as list_position(['page', 'ticket', 'note'], severity);
