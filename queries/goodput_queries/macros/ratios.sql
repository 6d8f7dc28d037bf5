-- The ratios of the ledger (accounting rules 1.4), one definition each. Arguments in GPU-milliseconds:
-- c capacity, held, u not available, gang gang_wait, s durable step time (throttled, straggler_wait,
-- exposed_comm, step_unsplit, productive), p productive, x step_unsplit, k not settled.
create or replace macro availability_ratio(c, u) as ((c - u) / nullif(c, 0));
create or replace macro allocation_ratio(held, c, u) as (held / nullif(c - u, 0));
create or replace macro scheduling_ratio(held, gang, c) as ((held - gang) / nullif(c, 0));
create or replace macro runtime_lo_ratio(s, held, gang) as (s / nullif(held - gang, 0));
create or replace macro runtime_hi_ratio(s, k, held, gang) as ((s + k) / nullif(held - gang, 0));
create or replace macro program_lo_ratio(p, s, k) as (case when s > 0 then p / (s + k) end);
create or replace macro program_hi_ratio(p, x, s, k) as (case when s > 0 then (p + x + k) / (s + k) end);
create or replace macro overall_lo_ratio(p, c) as (p / nullif(c, 0));
create or replace macro overall_hi_ratio(p, x, k, c) as ((p + x + k) / nullif(c, 0));
create or replace macro goodput_ratio(p, x, c) as ((p + x) / nullif(c, 0));
create or replace macro coverage_ratio(unknown_ms, busy_ms, held) as (1 - (unknown_ms + busy_ms) / nullif(held, 0));
create or replace macro is_unsettled(category) as (category in ('unknown', 'busy_unclassified', 'at_risk'));
create or replace macro is_kept_step(category) as (
    category in ('throttled', 'straggler_wait', 'exposed_comm', 'step_unsplit', 'productive')
);
-- The numerator of the headline: kept step time with its communication.
create or replace macro is_useful(category) as (category in ('exposed_comm', 'step_unsplit', 'productive'));
