-- Whether the scope has all clusters, or this one.
create or replace macro in_cluster(row_cluster) as (
    getvariable('scope_cluster') is null or row_cluster = getvariable('scope_cluster')
);

-- Whether a place belongs to the scope's part of the fleet; an unset variable does not restrict.
create or replace macro in_place(row_cluster, row_node, row_gpu_uuid, row_gpu_model) as (
    in_cluster(row_cluster)
    and (getvariable('scope_node') is null or row_node = getvariable('scope_node'))
    and (getvariable('scope_gpu_uuid') is null or row_gpu_uuid = getvariable('scope_gpu_uuid'))
    and (getvariable('scope_gpu_model') is null or row_gpu_model = getvariable('scope_gpu_model'))
);

-- Whether the reader sees all teams, or this one among others; rows without a team belong to none.
create or replace macro of_teams(row_team) as (
    getvariable('scope_teams') is null
    or coalesce(list_contains(getvariable('scope_teams')::varchar[], row_team), false)
);

-- Whether the reader sees the rows of all teams.
create or replace macro sees_all_teams() as (getvariable('scope_teams') is null);

-- Whether it is the time of an owner in the scope.
create or replace macro of_owner(row_team, row_user, row_run, row_partition) as (
    of_teams(row_team)
    and (getvariable('scope_team') is null or row_team = getvariable('scope_team'))
    and (getvariable('scope_user') is null or row_user = getvariable('scope_user'))
    and (getvariable('scope_run') is null or row_run = getvariable('scope_run'))
    and (getvariable('scope_partition') is null or row_partition = getvariable('scope_partition'))
);

create or replace macro in_scope(
    row_cluster, row_node, row_gpu_uuid, row_gpu_model, row_team, row_user, row_run, row_partition
) as (
    in_place(row_cluster, row_node, row_gpu_uuid, row_gpu_model)
    and of_owner(row_team, row_user, row_run, row_partition)
);

-- Whether a row of marts.ledger_owned is of the grain that sums of nodes need; where a GPU is chosen, of that of GPUs: what
-- one GPU did its node's sum does not say.
create or replace macro in_node_grain(is_by_node) as (is_by_node = (getvariable('scope_gpu_uuid') is null));

-- Whether [start_ms, end_ms) has a part inside the scope's window; a null end is still open.
create or replace macro in_window(start_ms, end_ms) as (
    start_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    and coalesce(end_ms, 9223372036854775807) > coalesce(getvariable('scope_from_ms')::bigint, 0)
);

-- Whether the window holds the whole hour that begins at hour_ms.
create or replace macro is_whole_hour(hour_ms) as (
    hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0)
    and hour_ms <= coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807) - 3600000
);

-- Whether the scope restricts neither place nor owner.
create or replace macro is_whole_fleet() as (
    sees_all_teams() and coalesce(
        getvariable('scope_cluster'), getvariable('scope_node'), getvariable('scope_gpu_uuid'), getvariable('scope_gpu_model'),
        getvariable('scope_team'), getvariable('scope_user'), getvariable('scope_run'), getvariable('scope_partition')
    ) is null
);

-- Length of the buckets of the scope: an hour unless it is set.
create or replace macro scope_bucket_ms() as (coalesce(getvariable('scope_bucket_ms')::bigint, 3600000));

-- Beginning of the bucket of a moment.
create or replace macro bucket_start(at_ms) as (at_ms // scope_bucket_ms() * scope_bucket_ms());

-- Beginnings of the buckets that have a part of [start_ms, end_ms), which is not empty.
create or replace macro bucket_starts(start_ms, end_ms) as (range(bucket_start(start_ms), end_ms, scope_bucket_ms()));

-- Milliseconds of [start_ms, end_ms) in the bucket that begins at bucket_ms, which has a part of it.
create or replace macro ms_in_bucket(start_ms, end_ms, bucket_ms) as (
    least(end_ms, bucket_ms + scope_bucket_ms()) - greatest(start_ms, bucket_ms)
);
