-- Name of an idle gap, by which pages link to it.
create or replace macro idle_gap_id(gpu_uuid, gpu_instance, whole_start_ms) as (
    left(md5(gpu_uuid || gpu_instance || whole_start_ms), 12)
);

-- Why a GPU was idle in a part of a gap, by the ledger's category and its detail.
create or replace macro gap_cause(category, is_beside_work, phase, phase_label) as (
    case
        when is_beside_work then 'Unused by its job'
        else coalesce(
            phase_label,
            nullif(replace(phase, '_', ' '), ''),
            case when category = 'idle_held' then 'Allocated, no job evidence' end
        )
    end
);

-- How sure the cause is.
create or replace macro gap_confidence(category) as (
    case
        when category in ('checkpoint_save', 'restore', 'data_stall', 'other_declared') then 'Confirmed'
        when category in ('unknown', 'busy_unclassified', 'free_unknown') then 'Not confirmed'
        else 'Likely'
    end
);

-- What shows it: how much of the gap was read, and how much of it the ledger has in the category.
create or replace macro gap_evidence(readings_coverage_ratio, gpu_ms, gap_gpu_ms, phase, label) as (
    coalesce(
        'no activity in ' || cast(round(100.0 * readings_coverage_ratio) as integer)
            || ' % of the gap, the part that readings cover; ',
        'no activity where readings cover the gap; '
    )
        || cast(round(100.0 * gpu_ms / nullif(gap_gpu_ms, 0)) as integer)
        || ' % of it is ' || case when phase = 'short_idle' then 'idle for less than the limit' else label end
        || ' in the ledger'
);
