-- What identifies a finding for as long as its rule and subject are the same, whatever is loaded or built.
create or replace macro finding_key(rule, cluster, node, gpu_uuid, run_key, detail) as (
    left(md5(concat_ws(
        chr(31), rule, coalesce(cluster, ''), coalesce(node, ''), coalesce(gpu_uuid, ''), coalesce(run_key, ''),
        coalesce(detail, '')
    )), 12)
);

-- The confidence of a finding: a rule whose findings are too often wrong in tests confirms none. right_ratio: null: not measured.
create or replace macro tested_confidence(confidence, right_ratio) as (
    case when right_ratio < threshold('confidence_right_ratio') then 'Not confirmed' else confidence end
);

-- `12.4 GPU-h`, `38.2 GPU-s`.
create or replace macro gpu_time_text(ms) as (
    case
        when ms >= 360000 then format('{:,.1f} GPU-h', ms / 3600000.0)
        else format('{:,.1f} GPU-s', ms / 1000.0)
    end
);

-- `12.4 %`.
create or replace macro percent_text(ratio) as (printf('%.1f %%', 100 * ratio));

-- The evidence of a loss in a sentence; kind: of its rule, cause: of an ending.
create or replace macro loss_evidence(kind, run_key, gpu_uuid, gpu_ms, share_ratio, cases, cause) as (
    gpu_time_text(gpu_ms)
    || case kind when 'data quality' then ', ' when 'failures' then ' lost with stalls and restarts, ' else ' lost, ' end
    || percent_text(share_ratio) || ' of '
    || case when run_key is null and gpu_uuid is null and kind in ('capacity', 'health') then 'the capacity' else 'the allocated time' end
    || case when kind = 'failures' or gpu_uuid is not null then ', ' || counted(cases, 'attempt') else '' end
    || coalesce('; ' || left(cause, 300), '')
);

-- What a source says of a node that is out of use; the reason is text of others.
create or replace macro outage_text(state, sources, reason) as (
    state || ' by ' || sources || coalesce(' (' || left(regexp_replace(reason, '\p{C}', '', 'g'), 80) || ')', '')
);

-- The share of GPU time known to be of no use from a moment on; an aggregate over hours.
create or replace macro lost_share_from(from_ms, hour_ms, base_ms, lost_ms) as (
    sum(lost_ms) filter (where hour_ms >= from_ms) / nullif(sum(base_ms) filter (where hour_ms >= from_ms), 0)
);
