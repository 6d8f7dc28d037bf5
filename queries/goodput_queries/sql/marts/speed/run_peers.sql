-- Speed of the scope's runs against other runs with the same job name, GPU models and number of GPUs in their cluster: of
-- all times where the scope is one run, else those of the window.
-- grain: run_key
-- evaluated: first
-- access: team
-- speed_unit: tokens, else samples, else steps: what its speed is in, and that of its peers
-- speed: median of a step, per second; steps: number of steps; gpus: of its largest attempt
-- peers: number of other runs that report the same; peer_speed: their median
-- peer_ratio: speed / peer_speed; peer_reason: why it is not known
-- best_peer_speed: of the fastest of those that declare the same parameters, and have `peer_speed_steps`
with runs as (
    select
        attempts.run_key,
        any_value(columns(['cluster', 'job_name', 'team', 'user_name', 'partition'])),
        max(attempts.gpus) as gpus
    from intermediate.int_attempts as attempts
    where
        attempts.has_events
        and of_teams(attempts.team)
        and (chosen_run() is not null or in_window(attempts.start_ms, attempts.end_ms))
        and in_cluster(attempts.cluster)
    group by attempts.run_key
),

asked as (
    select * from runs where of_owner(team, user_name, run_key, partition)
),

candidates as (
    select runs.* from runs semi join asked using (cluster, job_name, gpus)
    union
    select * from asked
),

models as (
    select owners.run_key, string_agg(distinct stays.gpu_model, ', ' order by stays.gpu_model) as gpu_models
    from (select distinct job_run_key, gpu_uuid from intermediate.int_holds) as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join intermediate.int_gpu_inventory as stays using (gpu_uuid)
    where owners.run_key in (select run_key from candidates) and of_teams(owners.team)
    group by owners.run_key
),

speeds as (
    select
        steps.run_key,
        case
            when count(steps.tokens) = count(*) then 'tokens'
            when count(steps.samples) = count(*) then 'samples'
            else 'steps'
        end as speed_unit,
        1000 * case speed_unit
            when 'tokens' then median(steps.tokens / (steps.end_ms - steps.start_ms))
            when 'samples' then median(steps.samples / (steps.end_ms - steps.start_ms))
            else 1 / median(steps.end_ms - steps.start_ms)
        end as speed,
        count(*) as steps
    from intermediate.int_train_steps as steps
    where
        steps.end_ms > steps.start_ms
        and steps.run_key in (select run_key from candidates)
        and steps.attempt_key in (select attempt_key from intermediate.int_attempts where of_teams(team))
    group by steps.run_key
),

declared as (
    select owners.run_key, arg_max(models.params, models.at_ms) as params
    from staging.stg_job_models as models
    inner join intermediate.int_report_lives as lives
        on models.cluster = lives.cluster and models.run_id = lives.run_id
        and models.attempt is not distinct from lives.attempt
        and models.at_ms >= lives.from_ms and models.at_ms < lives.until_ms
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where models.params > 0 and of_teams(owners.team) and owners.run_key in (select run_key from candidates)
    group by owners.run_key
),

known as (
    select candidates.*, models.gpu_models, declared.params, speeds.speed_unit, speeds.speed, speeds.steps
    from candidates
    inner join speeds using (run_key)
    left join models using (run_key)
    left join declared using (run_key)
),

others as (
    select
        known.run_key,
        count(*) as peers,
        median(peers.speed) as peer_speed,
        max(peers.speed) filter (
            where known.params is not distinct from peers.params and peers.steps >= threshold('peer_speed_steps')
        ) as best_peer_speed
    from known
    inner join known as peers
        on known.run_key != peers.run_key
        and known.cluster = peers.cluster
        and known.job_name = peers.job_name
        and known.gpus = peers.gpus
        and known.gpu_models is not distinct from peers.gpu_models
        and known.speed_unit = peers.speed_unit
    group by known.run_key
)

select
    known.run_key,
    known.speed_unit,
    known.speed,
    known.steps,
    known.gpus,
    coalesce(others.peers, 0) as peers,
    others.peer_speed,
    others.best_peer_speed,
    known.speed / others.peer_speed as peer_ratio,
    case
        when others.peers > 0 then null
        when known.job_name is null then 'the job has no name'
        else 'no other run of this name, GPU model and size'
    end as peer_reason
from known
left join others using (run_key)
where of_owner(known.team, known.user_name, known.run_key, known.partition)
