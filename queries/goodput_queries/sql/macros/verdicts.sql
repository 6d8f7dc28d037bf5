-- Whether a loss is large enough to be a finding. share_ratio: of base_ms, the time that it is a share of; least_share, kind: of
-- its rule; gpus: of its run, null of none.
create or replace macro is_large_loss(rule, kind, least_share, gpu_ms, share_ratio, base_ms, gpus) as (
    gpu_ms >= threshold('finding_min_ms')
    -- of a large run one end is a small share, however much is lost
    and (share_ratio >= least_share or (kind = 'failures' and gpu_ms >= threshold('finding_ticket_ms')))
    -- of a short run the start is always a large share
    and (rule <> 'slow_start' or base_ms >= threshold('finding_start_min_ms') * gpus)
);

-- How sure a loss is; sure_ms: the part that is certainly recoverable.
create or replace macro loss_confidence(rule, gpu_ms, sure_ms) as (
    case
        when rule = 'unclassified_time' then 'Not confirmed'
        when sure_ms >= gpu_ms and rule not in ('idle_allocation', 'gaps_between_steps') then 'Confirmed'
        else 'Likely'
    end
);

-- Rank of a severity of findings: 1 is the most severe; and the severity of a rank.
create or replace macro severity_rank(severity) as list_position(['page', 'ticket', 'note'], severity);
create or replace macro severity_of_rank(rank) as ['page', 'ticket', 'note'][rank];

-- Rank of the severity of a finding that is open: by its effect (severity_when of its rule), else a note where the loss is small,
-- else that of its rule.
create or replace macro open_severity_rank(severity, severity_when, effect, is_small) as
    severity_rank(coalesce(severity_when[effect], case when is_small then 'note' end, severity));

-- ... and of one that has closed: at most that of the effect 'over', and a note where the loss is small.
create or replace macro closed_severity_rank(open_rank, severity_when, is_small) as
    greatest(
        open_rank,
        severity_rank(severity_when['over']),
        case when is_small then severity_rank('note') end
    );
