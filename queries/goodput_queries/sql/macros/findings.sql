-- What identifies a finding for as long as its rule and subject are the same, whatever is loaded or built.
create or replace macro finding_key(rule, cluster, node, gpu_uuid, run_key, detail) as (
    left(md5(concat_ws(
        chr(31), rule, coalesce(cluster, ''), coalesce(node, ''), coalesce(gpu_uuid, ''), coalesce(run_key, ''),
        coalesce(detail, '')
    )), 12)
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
