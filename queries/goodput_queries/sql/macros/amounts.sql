-- Steps and short pieces of attempts as amounts: the ledger has stretches of them (category stepping), and what is in a
-- stretch is known in milliseconds by ten minutes, exactly.

-- Amounts of each category in parts of stretches; a part that cuts ten minutes is counted step by step.
-- ranges: name of a relation with attempt_key, hour_ms, start_ms, end_ms, each inside one stretch and hour
-- Returns these, with gpu_uuid (null: of each GPU of the gang; else to be added to that), category, phase, ms;
-- first_ms, last_ms of the category in the part; laid_ms: where it ends when amounts are laid one after the other.
create or replace macro step_amounts(ranges) as table (
    with wanted as (
        select distinct attempt_key, hour_ms, start_ms, end_ms from query_table(ranges)
    ),

    touched as materialized (
        select
            wanted.*,
            amounts.* exclude (attempt_key, hour_ms, start_ms, end_ms),
            amounts.start_ms as from_ms,
            amounts.end_ms as to_ms,
            amounts.start_ms >= wanted.start_ms and amounts.end_ms <= wanted.end_ms as is_whole
        from wanted
        inner join intermediate.int_step_amounts as amounts using (attempt_key, hour_ms)
        where amounts.start_ms < wanted.end_ms and amounts.end_ms > wanted.start_ms
    ),

    cut as (
        select distinct
            attempt_key, hour_ms, start_ms, end_ms, from_ms // ten_minutes_ms() * ten_minutes_ms() as cell_ms,
            greatest(from_ms, start_ms) as from_ms, least(to_ms, end_ms) as to_ms
        from touched
        where not is_whole
    ),

    parts as (
        select attempt_key, hour_ms, start_ms, end_ms, gpu_uuid, category, phase, ms, first_ms, last_ms
        from touched
        where is_whole
        union all
        -- a split takes its time from the step
        select
            cut.attempt_key, cut.hour_ms, cut.start_ms, cut.end_ms, splits.gpu_uuid,
            unnest([splits.category, 'step_unsplit']), unnest([splits.phase, null]),
            unnest([1, -1]) * (least(splits.end_ms, cut.to_ms) - greatest(splits.start_ms, cut.from_ms)),
            unnest([greatest(splits.start_ms, cut.from_ms), null]), unnest([least(splits.end_ms, cut.to_ms), null])
        from cut
        inner join intermediate.int_step_splits as splits using (attempt_key, cell_ms)
        where splits.start_ms < cut.to_ms and splits.end_ms > cut.from_ms
        union all
        select
            cut.attempt_key, cut.hour_ms, cut.start_ms, cut.end_ms, null, pieces.category, pieces.phase,
            least(pieces.end_ms, cut.to_ms) - greatest(pieces.start_ms, cut.from_ms),
            greatest(pieces.start_ms, cut.from_ms), least(pieces.end_ms, cut.to_ms)
        from cut
        inner join (
            select *, unnest(range(start_ms // ten_minutes_ms(), (end_ms - 1) // ten_minutes_ms() + 1)) * ten_minutes_ms() as cell_ms
            from intermediate.int_run_timeline
            where stretch_ms is not null
        ) as pieces using (attempt_key, cell_ms)
        where pieces.start_ms < cut.to_ms and pieces.end_ms > cut.from_ms
    ),

    summed as (
        select
            attempt_key, hour_ms, start_ms, end_ms, gpu_uuid, category, phase,
            sum(ms)::bigint as ms, min(first_ms) as first_ms, max(last_ms) as last_ms
        from parts
        group by all
        having sum(ms) <> 0
    )

    select
        *,
        start_ms + sum(ms) over (
            partition by attempt_key, start_ms, end_ms, gpu_uuid order by category, coalesce(phase, '')
        )::bigint as laid_ms
    from summed
);

-- The ledger of segments, or of parts of them, with the amounts of each stretch in its place.
-- segments: name of a relation with the columns of intermediate.int_ledger_segments but gpu_ms
-- Returns one row a segment, and of a stretch one a category and phase, with further ones (of which some are negative) for
-- a GPU that has amounts of its own: they are to be summed up. first_ms, last_ms are those of the category in it, ms its
-- time, gpu_ms the same as milliseconds of a whole GPU: of a part of a GPU the amounts are laid one after the other, so
-- that their shares add up to that of the whole. is_amount: it is not the whole of [start_ms, end_ms).
create or replace macro ledger_of(segments) as table (
    with stepping as (
        from query_table(segments) where category = 'stepping'
    ),

    -- planned and computed once
    amounts as materialized (
        from step_amounts('stepping')
    ),

    -- apart, so that a condition on the category is met before any join
    parts as (
        select
            *, start_ms as first_ms, end_ms as last_ms, end_ms - start_ms as ms, end_ms as laid_ms
        from query_table(segments)
        where category <> 'stepping'
        union all
        select
            stepping.* replace (amounts.category as category, amounts.phase as phase),
            amounts.first_ms, amounts.last_ms, amounts.ms, amounts.laid_ms
        from stepping
        inner join (from amounts where gpu_uuid is null) as amounts using (attempt_key, hour_ms, start_ms, end_ms)
        union all
        select
            stepping.* replace (amounts.category as category, amounts.phase as phase),
            amounts.first_ms, amounts.last_ms, amounts.ms, amounts.laid_ms
        from stepping
        inner join amounts using (attempt_key, hour_ms, start_ms, end_ms, gpu_uuid)
    ),

    select
        * exclude (share_lo, share_hi, share_of, laid_ms),
        share_ms(laid_ms - ms, laid_ms, share_lo, share_hi, share_of) as gpu_ms,
        ms < end_ms - start_ms as is_amount
    from parts
);

-- Segments, cut at the window, cut into bins of the scope's bucket_ms.
-- pieces: name of a relation with start_ms, end_ms; Returns it with bin_ms, start of the bin
create or replace macro segment_bins(pieces) as table (
    -- segments do not cross hours: in bins of whole hours each lies in one
    with cut as (
        select *, bucket_start(start_ms) as bin_ms from query_table(pieces) where scope_bucket_ms() % one_hour_ms() = 0
        union all
        select *, unnest(bucket_starts(start_ms, end_ms)) as bin_ms
        from query_table(pieces)
        where scope_bucket_ms() % one_hour_ms() <> 0
    )

    select * replace (greatest(start_ms, bin_ms) as start_ms, least(end_ms, bin_ms + scope_bucket_ms()) as end_ms)
    from cut
    where end_ms > start_ms
);
