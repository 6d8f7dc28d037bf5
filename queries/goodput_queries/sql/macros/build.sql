-- The hours that a build replaces, from the start of the first to the end of the last, epoch ms.
create or replace macro build_from_ms() as (coalesce(getvariable('build_from_ms')::bigint, 0));
create or replace macro build_to_ms() as (coalesce(getvariable('build_to_ms')::bigint, 0));

-- The last load that the previous build processed.
create or replace macro built_sequence() as (coalesce(getvariable('built_sequence')::bigint, -1));

-- How far beyond an hour a build reads: over ten intervals of any source.
create or replace macro reading_margin_ms() as (coalesce(getvariable('reading_margin_ms')::bigint, one_hour_ms()));

-- No event of the runs that a build looks at is earlier; set by the build.
create or replace macro build_events_from_ms() as (coalesce(getvariable('build_events_from_ms')::bigint, 0));

-- The run of the lives in a job run: the first name from the most direct source.
create or replace macro run_of_lives(run_id, place, first_ms) as (
    arg_min(nullif(run_id, ''), (place, first_ms, run_id))
);

-- The last load whose rows a merged stage has; set by the build.
create or replace macro merged_sequence() as (coalesce(getvariable('merged_sequence')::bigint, -1));

-- An undeclared gap after a step that is shorter than this belongs to the step.
create or replace macro gap_of_step_max_ms(median_step_ms) as (
    greatest(threshold('gap_of_step_ms'), threshold('gap_step_share') * median_step_ms)
);
