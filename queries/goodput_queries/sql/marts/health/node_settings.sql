-- Settings of nodes by their latest snapshots: of the nodes of each run in the scope, while it had them, and of each node
-- beside those of its GPU model.
-- grain: run_key, cluster, node, setting
-- access: team
-- run_key: null: beside nodes of its GPU model
-- setting: `env:NAME` is a variable of the job, `mount:PLACE` a file system
-- belongs_to: node; host: of the node, seen from outside of containers; process: of a process or its container
-- value: `not set` where others have one; null: unknown
-- unknown_because: why it could not be read
-- usual_value: of more than half of the nodes that are compared; null: there is none
-- nodes: number of nodes whose value is known
-- is_different: it is not the usual one, or there is none in its run
-- problem: what is known against the value; null: nothing
-- taken_at: when the snapshot was taken
-- until_at: end of the run on its nodes; null: it goes on, or no run
with read as materialized (
    select * from staging.stg_node_settings where at_ms < scope_to_ms()
),

snapshots as materialized (
    select cluster, node, belongs_to, at_ms, run_id from read group by all
),

-- what a run calls itself in its snapshots
names as (
    select run_key, run_id as name from intermediate.int_job_run_owners
    union
    select run_key, job_id from intermediate.int_job_run_owners
    union
    select owners.run_key, lives.run_id
    from intermediate.int_attempt_lives as lives
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
),

members as (
    select
        'run ' || owners.run_key as peers, owners.run_key, holds.cluster, holds.node,
        max(coalesce(holds.end_ms, forever_ms())) as until_ms,
        list(distinct gpus.gpu_index) filter (where holds.method <> 'assumed' and gpus.gpu_index is not null) as gpus
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    left join intermediate.int_gpu_names as gpus using (gpu_uuid)
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
        and holds.node in (select node from snapshots)
    group by owners.run_key, holds.cluster, holds.node
    union all
    select
        concat_ws(
            ' ', cluster, arg_max(value, at_ms) filter (where setting = 'gpu.count'),
            arg_max(value, at_ms) filter (where setting = 'gpu.model')
        ) as peers,
        null as run_key, cluster, node, forever_ms() as until_ms, null as gpus
    from read
    where sees_all_teams()
    group by cluster, node
),

-- the latest snapshot before the run's end, of its processes only one of the run
latest as (
    select members.*, snapshots.* exclude (cluster, node)
    from (select members.*, unnest(['node', 'host']) as part from members) as members
    asof join snapshots
        on members.cluster = snapshots.cluster
        and members.node = snapshots.node
        and members.part = snapshots.belongs_to
        and members.until_ms > snapshots.at_ms
    union all by name
    select
        members.*, snapshots.belongs_to, max(snapshots.at_ms) as at_ms,
        arg_max(snapshots.run_id, snapshots.at_ms) as run_id
    from members
    inner join names using (run_key)
    inner join snapshots
        on members.cluster = snapshots.cluster
        and members.node = snapshots.node
        and names.name = snapshots.run_id
        and members.until_ms > snapshots.at_ms
    where snapshots.belongs_to = 'process'
    group by all
),

-- what a process sees is nearer to its run than what the host has
taken as materialized (
    select latest.* exclude (run_id), read.setting, read.value, read.unknown_because
    from latest
    inner join read using (cluster, node, belongs_to, at_ms, run_id)
    qualify row_number() over (
        partition by peers, cluster, node, setting order by latest.belongs_to = 'process' desc
    ) = 1
),

every_setting as (
    select peers, setting, max(belongs_to) as belongs_to, count(value) > 0 as is_known from taken group by all
),

seen as (
    select peers, run_key, cluster, node, until_ms, gpus, belongs_to, max(at_ms) as at_ms from taken group by all
),

-- what a snapshot does not have is not set there, or unknown where all of its kind is
filled as (
    select
        seen.* exclude (at_ms),
        coalesce(taken.at_ms, seen.at_ms) as at_ms,
        every_setting.setting,
        case when taken.setting is null and kinds.setting is null then 'not set' else taken.value end as value,
        coalesce(taken.unknown_because, kinds.unknown_because) as unknown_because
    from every_setting
    inner join seen using (peers, belongs_to)
    left join taken using (peers, cluster, node, setting)
    left join taken as kinds
        on seen.peers = kinds.peers
        and seen.cluster = kinds.cluster
        and seen.node = kinds.node
        and regexp_extract(every_setting.setting, '^[a-z]+') = kinds.setting
    where every_setting.is_known or taken.setting is not null
),

counted as (
    select
        *,
        count(value) over (partition by peers, setting) as nodes,
        count(value) over (partition by peers, setting, value) as nodes_alike
    from filled
),

compared as (
    select
        *,
        max(value) filter (where 2 * nodes_alike > nodes) over (partition by peers, setting) as usual_value
    from counted
)

select
    compared.* exclude (peers, at_ms, until_ms, gpus, nodes_alike),
    coalesce(known.is_compared, 1) = 1
    and coalesce(compared.value <> compared.usual_value, compared.value is not null and compared.run_key is not null)
    and compared.nodes >= if(compared.run_key is null, threshold('settings_min_nodes'), 2) as is_different,
    case
        when compared.value = 'not set' then null
        when
            regexp_full_match(compared.value, known.harmful)
            and (known.needs is null or needed.value not in ('none', '0'))
            then known.problem
        when
            is_small_on_a_fast_card(
                case
                    when compared.setting = 'net.mtu' then compared.value
                    -- least, usual and largest size
                    when starts_with(compared.setting, 'net.ipv4.tcp_') then regexp_extract(compared.value, '\d+$')
                end,
                if(compared.setting = 'net.mtu', threshold('default_mtu_bytes'), threshold('socket_buffer_bytes')),
                needed.value,
                threshold('fast_card_mbit_per_s')
            )
            then known.problem
        when not regexp_full_match(compared.value, known.accepted) then 'the variable does not accept this value'
        when
            compared.setting in ('env:NCCL_SOCKET_IFNAME', 'env:NCCL_IB_HCA')
            and not names_a_device(compared.value, needed.value)
            then 'the node has none that is called so; it has ' || needed.value
        when
            compared.setting in ('process.cpus', 'process.numa')
            and len(near_gpus) > 0
            and not list_has_any(numbers_of(compared.value), near_gpus)
            then known.problem
        when known.setting is null and starts_with(compared.setting, 'env:NCCL_') then (
            select 'NCCL has no such variable; it has ' || min(near.setting[5:])
            from reference.known_settings as near
            where damerau_levenshtein(near.setting, compared.setting) <= 2
            having count(*) > 0
        )
    end as problem,
    from_ms(compared.at_ms) as taken_at,
    from_ms(nullif(compared.until_ms, forever_ms())) as until_at
from compared
left join reference.known_settings as known using (setting)
left join taken as needed
    on compared.peers = needed.peers
    and compared.cluster = needed.cluster
    and compared.node = needed.node
    and known.needs = needed.setting
left join taken as places
    on compared.peers = places.peers
    and compared.cluster = places.cluster
    and compared.node = places.node
    and compared.setting = 'process.cpus'
    and places.setting = 'numa.cpus'
cross join lateral (
    select numbers_for(needed.value, compared.gpus) as numa,
        if(compared.setting = 'process.cpus', numbers_for(places.value, numa), numa) as near_gpus
) as near
where in_place(compared.cluster, compared.node, null, null)
