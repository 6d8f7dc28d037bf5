-- Settings of nodes by their latest snapshots: of the nodes of each run in the scope, while it had them, and of each node
-- beside those of its GPU model.
-- grain: run_key, cluster, node, setting
-- access: team
-- skip_if_empty: raw.node_settings
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
with known as materialized (
    select * from staging.stg_node_settings where at_ms < scope_to_ms()
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
        'run ' || owners.run_key as peers,
        owners.run_key,
        holds.cluster,
        holds.node,
        max(coalesce(holds.end_ms, forever_ms())) as until_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
        and holds.node in (select node from known)
    group by owners.run_key, holds.cluster, holds.node
    union all
    select
        concat_ws(
            ' ',
            cluster,
            arg_max(value, at_ms) filter (where setting = 'gpu.count'),
            arg_max(value, at_ms) filter (where setting = 'gpu.model')
        ) as peers,
        null as run_key,
        cluster,
        node,
        forever_ms() as until_ms
    from known
    where sees_all_teams()
    group by cluster, node
),

latest as (
    select members.*, known.* exclude (cluster, node)
    from members
    inner join known using (cluster, node)
    left join names on members.run_key = names.run_key and known.run_id = names.name
    where
        known.at_ms < members.until_ms
        and (known.belongs_to <> 'process' or names.name is not null)
    qualify known.at_ms = max(known.at_ms) over (partition by members.run_key, cluster, node, known.belongs_to)
),

-- what a process sees is nearer to its run than what the host has
taken as (
    select * from latest
    qualify row_number() over (
        partition by run_key, cluster, node, setting order by belongs_to = 'process' desc, problem
    ) = 1
),

every_setting as (
    select peers, setting, max(belongs_to) as belongs_to, bool_and(is_compared) as is_compared
    from taken
    group by peers, setting
),

seen as (
    select peers, run_key, cluster, node, until_ms, belongs_to, max(at_ms) as at_ms
    from taken
    group by peers, run_key, cluster, node, until_ms, belongs_to
),

-- a setting that a snapshot does not have is not set there
filled as (
    select
        seen.* exclude (at_ms),
        coalesce(taken.at_ms, seen.at_ms) as at_ms,
        every_setting.setting,
        every_setting.is_compared,
        case when taken.setting is null then 'not set' else taken.value end as value,
        taken.unknown_because,
        taken.problem
    from every_setting
    inner join seen using (peers, belongs_to)
    left join taken using (peers, cluster, node, setting)
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
    run_key,
    cluster,
    node,
    setting,
    belongs_to,
    value,
    unknown_because,
    usual_value,
    nodes,
    is_compared
    and coalesce(value <> usual_value, value is not null and run_key is not null)
    and nodes >= case when run_key is null then threshold('settings_min_nodes') else 2 end as is_different,
    problem,
    from_ms(at_ms) as taken_at,
    from_ms(nullif(until_ms, forever_ms())) as until_at
from compared
where in_place(cluster, node, null, null)
