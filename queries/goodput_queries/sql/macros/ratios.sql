-- The ratios of the ledger (docs/accounting-rules.md: Ratios and the headline), one definition each.
-- Arguments in GPU-milliseconds: c capacity, held (allocated), u not available, gang gang_wait, s durable step time
-- (is_kept_step), useful (is_useful), x step_unsplit, k not settled.

-- Changes whenever a historical figure of goodput would: exports, statements and trends carry it. 1: communication was
-- a loss; 2: it is useful.
create or replace macro definition_version() as (2);

-- Whether evaluation and other declared work count as useful: `evaluation_counts` of goodput.toml.
create or replace macro evaluation_counts() as (coalesce(getvariable('evaluation_counts')::boolean, false));

create or replace macro is_unsettled(category) as (category in ('unknown', 'busy_unclassified', 'at_risk'));
create or replace macro is_useful(category) as (
    category in ('exposed_comm', 'step_unsplit', 'productive')
    or (category = 'other_declared' and evaluation_counts())
);
create or replace macro is_kept_step(category) as (
    is_useful(category) or category in ('throttled', 'straggler_wait')
);
create or replace macro kind_of(category, kind) as (
    case when kind <> 'goodput_optional' then kind when is_useful(category) then 'goodput' else kind end
);

create or replace macro availability_ratio(c, u) as ((c - u) / nullif(c, 0));
create or replace macro allocation_ratio(held, c, u) as (held / nullif(c - u, 0));
create or replace macro scheduling_ratio(held, gang, c) as ((held - gang) / nullif(c, 0));
create or replace macro goodput_ratio(useful, c) as (useful / nullif(c, 0));
create or replace macro goodput_hi_ratio(useful, k, c) as ((useful + k) / nullif(c, 0));
-- Of a run: null where none of its time is classified, which is no goodput of 0.
create or replace macro measured_goodput_ratio(useful, k, c) as (case when k < c then useful / c end);
-- Neither idle nor waiting for the rest of a gang, of the time that there is evidence of.
create or replace macro active_ratio(inactive_ms, unknown_ms, held) as (
    1 - inactive_ms / nullif(held - unknown_ms, 0)
);
create or replace macro coverage_ratio(unknown_ms, busy_ms, held) as (1 - (unknown_ms + busy_ms) / nullif(held, 0));

-- Of wall clock, by NVIDIA's Cluster Readiness Engine (pkg/goodput): 0 where nothing is left of it.
create or replace macro nvcre_goodput_ratio(wall, lost, rescheduling, resuming, saving) as (
    case
        when wall <= rescheduling then 0
        else greatest(0, wall - lost - rescheduling - resuming - saving) / (wall - rescheduling)
    end
);

-- A ratio needs a base: at least half of what it is of has to be settled, else it is null and the reason says so.
create or replace macro has_runtime(k, held, gang) as (held > gang and 2 * k <= held - gang);
create or replace macro runtime_lo_ratio(s, k, held, gang) as (
    case when has_runtime(k, held, gang) then s / (held - gang) end
);
create or replace macro runtime_hi_ratio(s, k, held, gang) as (
    case when has_runtime(k, held, gang) then (s + k) / (held - gang) end
);
create or replace macro has_program(s, x) as (s > 0 and 2 * x <= s);
create or replace macro program_ratio(useful, s, x) as (case when has_program(s, x) then useful / s end);
create or replace macro not_measured(is_measured, open_ms, whole_ms) as (
    case
        when is_measured then null
        when whole_ms > 0
            then format('not measured (coverage {} %)', floor(100 * (whole_ms - open_ms) / whole_ms)::bigint)
        else 'not measured (no such time)'
    end
);

-- The sum of two numbers of which one may not be known; null where neither is.
create or replace macro sum_of_known(a, b) as (coalesce(a + b, a, b));

-- The share of a part of a counter in the whole of it, at most 1: the kernel takes back a little of what it counted as
-- waiting, and the readings of two counters are not of one instant.
create or replace macro share_of(part, whole) as (case when part > whole then 1 else part / nullif(whole, 0) end);

-- The power of two at or below a size in bytes.
create or replace macro size_bucket(size_bytes) as (1::bigint << floor(log2(size_bytes))::integer);
