-- Timeline of each attempt's gang from job events; excludes time that only telemetry can classify. Times of a piece are
-- whole, shares are those of the part in the scope's window.
-- grain: run_key, attempt, start_at, category
-- access: team
-- end_at: the end of the evidence while it runs
-- share_ratio: share of the piece's time that the ledger has in the category, a mean over the GPUs of the gang: steps have
--  several; is_most: the category with the largest share
with pieces as (
    select
        attempts.run_key,
        attempts.attempt,
        attempts.attempt_key,
        attempts.job_run_key,
        timeline.category,
        timeline.phase,
        timeline.start_ms,
        coalesce(timeline.end_ms, clusters.as_of_ms) as end_ms,
        scope_start(timeline.start_ms) as from_ms,
        scope_end(coalesce(timeline.end_ms, clusters.as_of_ms)) as to_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join intermediate.int_run_timeline as timeline using (attempt_key)
    where
        of_teams(attempts.team)
        and in_cluster(attempts.cluster)
        and in_run(attempts.run_key)
        and in_window(timeline.start_ms, timeline.end_ms)
),

-- instances of one GPU wait together
gangs as (
    select
        job_run_key,
        gpu_uuid,
        count(distinct gpu_instance) / sum(count(distinct gpu_instance)) over (partition by job_run_key) as gang_share
    from intermediate.int_holds
    where job_run_key in (select job_run_key from pieces)
    group by job_run_key, gpu_uuid
),

cells as (
    select
        attempt_key, job_run_key, start_ms, from_ms, to_ms,
        unnest(range(from_ms // ten_minutes_ms(), (to_ms - 1) // ten_minutes_ms() + 1)) * ten_minutes_ms() as cell_ms
    from pieces
    where category = 'step_unsplit'
),

-- what a split takes from its step
splits as (
    select
        cells.attempt_key,
        cells.start_ms,
        splits.category,
        sum(
            (least(splits.end_ms, cells.to_ms) - greatest(splits.start_ms, cells.from_ms))
            * case when splits.gpu_uuid is null then 1.0::double else gangs.gang_share end
        ) as ms
    from cells
    inner join intermediate.int_step_splits as splits using (attempt_key, cell_ms)
    left join gangs on cells.job_run_key = gangs.job_run_key and splits.gpu_uuid = gangs.gpu_uuid
    where
        splits.start_ms < cells.to_ms
        and splits.end_ms > cells.from_ms
        and (splits.gpu_uuid is null or gangs.gang_share is not null)
    group by all
),

parts as (
    select attempt_key, start_ms, category, ms from splits
    union all
    select pieces.attempt_key, pieces.start_ms, pieces.category, any_value(to_ms - from_ms) - coalesce(sum(ms), 0)
    from pieces
    left join splits using (attempt_key, start_ms)
    group by all
)

select
    pieces.run_key,
    pieces.attempt,
    parts.category,
    categories.label,
    categories.colour,
    case when parts.category = pieces.category then pieces.phase end as phase,
    from_ms(pieces.start_ms) as start_at,
    from_ms(pieces.end_ms) as end_at,
    parts.ms / (pieces.to_ms - pieces.from_ms) as share_ratio,
    row_number() over (
        partition by pieces.attempt_key, pieces.start_ms order by parts.ms desc, parts.category
    ) = 1 as is_most
from pieces
inner join parts using (attempt_key, start_ms)
inner join reference.gpu_second_categories as categories on parts.category = categories.category
where parts.ms >= 0.5 or pieces.to_ms <= pieces.from_ms
