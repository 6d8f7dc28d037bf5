-- Progress of each rank in each process group at the dump of its Flight Recorder, with times in epoch ms.
-- Dumps of one set that lie further apart than its longest timeout are of different stops: a restarted job
-- writes to the same names.
-- grain: dump_set, stop, rank, group_name
-- dump_set: with the cluster, where it was said
-- stop: numbers the stops of a dump set; of several dumps of a rank in a stop the latest is here
-- stop_last_ms: latest time in any of the stop's dumps
with named_groups as (
    select coalesce(cluster || ':', '') || dump_set as dump_key, * from raw.flight_groups
),

timeouts as (
    select coalesce(cluster || ':', '') || dump_set as dump_key, max(timeout_s) as timeout_s
    from raw.flight_records
    group by dump_key
),

dumps as (
    select distinct dump_key, rank, last_moment_at from named_groups
),

marked as (
    select
        dumps.*,
        -- a minute: a thousand ranks do not dump at once; 600 s: PyTorch's own timeout
        coalesce(
            dumps.last_moment_at - lag(dumps.last_moment_at) over (
                partition by dumps.dump_key order by dumps.last_moment_at nulls last, dumps.rank
            ) > to_seconds(coalesce(timeouts.timeout_s, 600) + 60),
            false
        ) as is_next_stop
    from dumps
    left join timeouts using (dump_key)
),

stops as (
    select
        *,
        count_if(is_next_stop) over (
            partition by dump_key order by last_moment_at nulls last, rank rows unbounded preceding
        )::integer as stop
    from marked
)

select
    named_groups.cluster,
    stops.dump_key as dump_set,
    stops.stop,
    stops.rank,
    named_groups.group_name,
    named_groups.group_description,
    named_groups.ranks,
    named_groups.last_enqueued,
    named_groups.last_completed,
    to_ms(max(stops.last_moment_at) over (partition by stops.dump_key, stops.stop)) as stop_last_ms
from stops
inner join named_groups
    on stops.dump_key = named_groups.dump_key
    and stops.rank = named_groups.rank
    and stops.last_moment_at is not distinct from named_groups.last_moment_at
qualify row_number() over (
    partition by stops.dump_key, stops.stop, stops.rank, named_groups.group_name
    order by stops.last_moment_at desc nulls last
) = 1
