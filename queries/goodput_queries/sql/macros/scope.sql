-- What the scope chooses; null: it does not restrict.
create or replace macro chosen_cluster() as (getvariable('scope_cluster'));
create or replace macro chosen_node() as (getvariable('scope_node'));
create or replace macro chosen_gpu_uuid() as (getvariable('scope_gpu_uuid'));
create or replace macro chosen_gpu_model() as (getvariable('scope_gpu_model'));
create or replace macro chosen_team() as (getvariable('scope_team'));
create or replace macro chosen_user() as (getvariable('scope_user'));
create or replace macro chosen_run() as (getvariable('scope_run'));
create or replace macro chosen_partition() as (getvariable('scope_partition'));
create or replace macro chosen_from_ms() as (getvariable('scope_from_ms')::bigint);
create or replace macro chosen_to_ms() as (getvariable('scope_to_ms')::bigint);
create or replace macro chosen_bucket_ms() as (getvariable('scope_bucket_ms')::bigint);

-- Bounds of the scope's window: all time where it has none.
create or replace macro scope_from_ms() as (coalesce(chosen_from_ms(), 0));
create or replace macro scope_to_ms() as (coalesce(chosen_to_ms(), forever_ms()));
create or replace macro scope_to_at() as (coalesce(from_ms(chosen_to_ms()), latest_at()));

-- Whether the scope has all of a kind, or this one.
create or replace macro in_cluster(row_cluster) as (chosen_cluster() is null or row_cluster = chosen_cluster());
create or replace macro in_node(row_node) as (chosen_node() is null or row_node = chosen_node());
create or replace macro in_gpu(row_gpu_uuid) as (chosen_gpu_uuid() is null or row_gpu_uuid = chosen_gpu_uuid());
create or replace macro in_gpu_model(row_gpu_model) as (
    chosen_gpu_model() is null or row_gpu_model = chosen_gpu_model()
);
create or replace macro in_team(row_team) as (chosen_team() is null or row_team = chosen_team());
create or replace macro in_user(row_user) as (chosen_user() is null or row_user = chosen_user());
create or replace macro in_run(row_run) as (chosen_run() is null or row_run = chosen_run());
create or replace macro in_partition(row_partition) as (
    chosen_partition() is null or row_partition = chosen_partition()
);

-- Whether a place belongs to the scope's part of the fleet.
create or replace macro in_place(row_cluster, row_node, row_gpu_uuid, row_gpu_model) as (
    in_cluster(row_cluster) and in_node(row_node) and in_gpu(row_gpu_uuid) and in_gpu_model(row_gpu_model)
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
    and in_team(row_team)
    and in_user(row_user)
    and in_run(row_run)
    and in_partition(row_partition)
);

create or replace macro in_scope(
    row_cluster, row_node, row_gpu_uuid, row_gpu_model, row_team, row_user, row_run, row_partition
) as (
    in_place(row_cluster, row_node, row_gpu_uuid, row_gpu_model)
    and of_owner(row_team, row_user, row_run, row_partition)
);

-- Whether [start_ms, end_ms) has a part inside the scope's window; a null end is still open.
create or replace macro in_window(start_ms, end_ms) as (
    start_ms < scope_to_ms()
    and coalesce(end_ms, forever_ms()) > scope_from_ms()
);

-- The part of [start_ms, end_ms) inside the scope's window.
create or replace macro scope_start(start_ms) as (
    greatest(start_ms, coalesce(chosen_from_ms(), start_ms))
);
create or replace macro scope_end(end_ms) as (
    least(end_ms, coalesce(chosen_to_ms(), end_ms))
);

-- Whether the window holds the whole hour that begins at hour_ms.
create or replace macro is_whole_hour(hour_ms) as (
    hour_ms >= scope_from_ms()
    and hour_ms <= scope_to_ms() - one_hour_ms()
);

-- Whether the scope restricts neither place nor owner.
create or replace macro is_whole_fleet() as (
    sees_all_teams() and coalesce(
        chosen_cluster(), chosen_node(), chosen_gpu_uuid(), chosen_gpu_model(),
        chosen_team(), chosen_user(), chosen_run(), chosen_partition()
    ) is null
);

-- Length of the buckets of the scope: an hour unless it is set.
create or replace macro scope_bucket_ms() as (coalesce(chosen_bucket_ms(), one_hour_ms()));

-- Beginning of the bucket of a moment.
create or replace macro bucket_start(at_ms) as (at_ms // scope_bucket_ms() * scope_bucket_ms());

-- Beginnings of the buckets that have a part of [start_ms, end_ms), which is not empty.
create or replace macro bucket_starts(start_ms, end_ms) as (range(bucket_start(start_ms), end_ms, scope_bucket_ms()));

-- Milliseconds of [start_ms, end_ms) in the bucket that begins at bucket_ms, which has a part of it.
create or replace macro ms_in_bucket(start_ms, end_ms, bucket_ms) as (
    least(end_ms, bucket_ms + scope_bucket_ms()) - greatest(start_ms, bucket_ms)
);
