-- Tokens of each account in the scope's window for the cost and energy of its runs that report tokens.
-- grain: cluster, team
-- access: team
-- skip_if_empty: intermediate.int_train_steps
-- runs: number of these runs, without those that several teams call alike; held_ms: their allocated time; held_ratio: of
--  that of all runs of the account
-- tokens: of steps that were not lost
-- tokens_per_cost, tokens_per_j: over the runs whose cost, or energy, is known; null: of none
with runs as (
    select
        costs.*,
        owners.cluster,
        owners.team
    from marts.run_token_costs as costs
    inner join (
        select run_key, any_value(cluster) as cluster, any_value(team) as team
        from intermediate.int_job_run_owners
        where of_teams(team)
        group by run_key
        having count(distinct team) <= 1
    ) as owners using (run_key)
)

select
    cluster,
    team,
    count(*) filter (where tokens is not null) as runs,
    (sum(held_ms) filter (where tokens is not null))::bigint as held_ms,
    sum(held_ms) filter (where tokens is not null) / sum(held_ms) as held_ratio,
    sum(tokens) as tokens,
    sum(tokens) filter (where cost > 0)
        / nullif(sum(cost) filter (where tokens is not null and cost > 0), 0)::double as tokens_per_cost,
    sum(tokens) filter (where energy_j > 0)
        / nullif(sum(energy_j) filter (where tokens is not null and energy_j > 0), 0) as tokens_per_j
from runs
group by cluster, team
having count(tokens) > 0
