-- Steps and short pieces of attempts as amounts: the ledger has stretches of them (category stepping), and what is in a
-- stretch is known in milliseconds by ten minutes, exactly.

-- What a stretch consists of, as intervals with a sign: pieces of the timeline count, and so do losses inside steps, which
-- are taken from their step. Time of a category is the sum of its intervals, each with its sign. One row an interval
-- and ten minutes; of one GPU alone where gpu_uuid is set, else of the whole gang.
-- timeline, splits: names of relations as intermediate.int_run_timeline and intermediate.int_step_splits
create or replace macro signed_pieces(timeline, splits) as table (
    with stretches as (
        select *, unnest(range(start_ms // 600000, (end_ms - 1) // 600000 + 1)) * 600000 as cell_ms
        from query_table(timeline)
        where stretch_ms is not null
    )

    select
        attempt_key, stretch_ms, cell_ms, null::varchar as gpu_uuid, category, phase,
        greatest(start_ms, cell_ms) as start_ms, least(end_ms, cell_ms + 600000) as end_ms, 1 as sign
    from stretches
    union all
    select attempt_key, stretch_ms, cell_ms, gpu_uuid, category, phase, start_ms, end_ms, 1
    from query_table(splits)
    union all
    select attempt_key, stretch_ms, cell_ms, gpu_uuid, 'step_unsplit', null, start_ms, end_ms, -1
    from query_table(splits)
);

-- Amounts of each category in parts of stretches; a part that cuts ten minutes is counted step by step.
-- ranges: name of a relation with attempt_key, hour_ms, start_ms, end_ms, each inside one stretch and hour
-- Returns these, with gpu_uuid (null: of each GPU of the gang; else to be added to that), category, phase, ms, and
-- first_ms, last_ms of the category in the part.
create or replace macro step_amounts(ranges) as table (
    with wanted as (
        select distinct attempt_key, hour_ms, start_ms, end_ms from query_table(ranges)
    ),

    touched as (
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
            attempt_key, hour_ms, start_ms, end_ms, from_ms // 600000 * 600000 as cell_ms,
            greatest(from_ms, start_ms) as from_ms, least(to_ms, end_ms) as to_ms
        from touched
        where not is_whole
    ),

    parts as (
        select attempt_key, hour_ms, start_ms, end_ms, gpu_uuid, category, phase, ms, first_ms, last_ms
        from touched
        where is_whole
        union all
        select
            cut.attempt_key, cut.hour_ms, cut.start_ms, cut.end_ms, pieces.gpu_uuid, pieces.category, pieces.phase,
            pieces.sign * (least(pieces.end_ms, cut.to_ms) - greatest(pieces.start_ms, cut.from_ms)),
            case when pieces.sign > 0 then greatest(pieces.start_ms, cut.from_ms) end,
            case when pieces.sign > 0 then least(pieces.end_ms, cut.to_ms) end
        from cut
        inner join intermediate.int_step_pieces as pieces using (attempt_key, cell_ms)
        where pieces.start_ms < cut.to_ms and pieces.end_ms > cut.from_ms
    )

    select
        attempt_key, hour_ms, start_ms, end_ms, gpu_uuid, category, phase,
        sum(ms)::bigint as ms, min(first_ms) as first_ms, max(last_ms) as last_ms
    from parts
    group by all
    having sum(ms) <> 0
);

-- The ledger of segments, or of parts of them, with the amounts of each stretch in its place.
-- segments: name of a relation with the columns of intermediate.int_ledger_segments but gpu_ms
-- Returns one row a segment, and of a stretch one a category and phase: first_ms, last_ms are those of the category
-- in it, ms its time, gpu_ms the same as milliseconds of a whole GPU; is_amount: it is not the whole of
-- [start_ms, end_ms).
create or replace macro ledger_of(segments) as table (
    with stepping as (
        from query_table(segments) where category = 'stepping'
    ),

    amounts as (
        from step_amounts('stepping')
    ),

    -- GPUs that have amounts of their own, added to those of their gang
    own as (
        select distinct attempt_key, hour_ms, start_ms, end_ms, gpu_uuid from amounts where gpu_uuid is not null
    ),

    of_gpus as (
        select
            attempt_key, hour_ms, start_ms, end_ms, gpu_uuid, category, phase,
            sum(ms)::bigint as ms, min(first_ms) as first_ms, max(last_ms) as last_ms
        from (
            select amounts.* replace (own.gpu_uuid as gpu_uuid)
            from own
            inner join amounts using (attempt_key, hour_ms, start_ms, end_ms)
            where amounts.gpu_uuid is null
            union all
            select * from amounts where gpu_uuid is not null
        )
        group by all
        having sum(ms) <> 0
    ),

    parts as (
        select stepping.* replace (amounts.category as category, amounts.phase as phase),
            amounts.ms, amounts.first_ms, amounts.last_ms
        from stepping
        anti join own using (attempt_key, hour_ms, start_ms, end_ms, gpu_uuid)
        inner join amounts using (attempt_key, hour_ms, start_ms, end_ms)
        where amounts.gpu_uuid is null
        union all
        select stepping.* replace (of_gpus.category as category, of_gpus.phase as phase),
            of_gpus.ms, of_gpus.first_ms, of_gpus.last_ms
        from stepping
        inner join of_gpus using (attempt_key, hour_ms, start_ms, end_ms, gpu_uuid)
    ),

    -- of a part of a GPU the amounts are laid one after the other, so that their shares add up to that of the whole
    laid as (
        select
            *,
            start_ms + sum(ms) over (
                partition by gpu_uuid, gpu_instance, start_ms, end_ms
                order by category, coalesce(phase, '') rows between unbounded preceding and current row
            ) as laid_ms
        from parts
        where share_lo > 0 or share_hi < share_of
    )

    select
        * exclude (share_lo, share_hi, share_of),
        start_ms as first_ms,
        end_ms as last_ms,
        end_ms - start_ms as ms,
        share_ms(start_ms, end_ms, share_lo, share_hi, share_of) as gpu_ms,
        false as is_amount
    from query_table(segments)
    where category <> 'stepping'
    union all by name
    select * exclude (share_lo, share_hi, share_of), ms as gpu_ms, ms < end_ms - start_ms as is_amount
    from parts
    where share_lo = 0 and share_hi = share_of
    union all by name
    select
        * exclude (share_lo, share_hi, share_of, laid_ms),
        share_ms(laid_ms - ms, laid_ms, share_lo, share_hi, share_of)::bigint as gpu_ms,
        ms < end_ms - start_ms as is_amount
    from laid
);
