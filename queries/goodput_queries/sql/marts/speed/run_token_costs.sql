-- Tokens of the scope's runs for their cost and energy, in the scope's window: useful work against all allocated time.
-- grain: run_key
-- access: team
-- tokens: of steps that were not lost; the last tokens of a run that goes on may still be
-- cost: of all allocated time; tokens_per_cost: in a unit of the rate card's currency; cost_reason: why it is not known
-- energy_j: of the GPUs, the mean power of the measured time over the allocated time; null where less than
--  half of that is measured; tokens_per_j; energy_reason: why it is not known
with tokens as (
    select run_key, case when count(tokens) > 0 then coalesce(sum(tokens) filter (where fate != 'lost'), 0) end as tokens
    from intermediate.int_train_steps
    where
        in_window(start_ms, end_ms)
        and attempt_key in (select attempt_key from intermediate.int_attempts where of_teams(team))
        and in_run(run_key)
    group by run_key
),

ledger as (
    select run_key, sum(gpu_ms)::bigint as held_ms, sum(cost) as cost, count(cost) = count(*) as is_priced
    from marts.run_categories
    group by run_key
),

energy as (
    select owners.run_key, sum(energies.energy_mj) as energy_mj, sum(energies.measured_ms) as measured_ms
    from marts.energy_scoped as energies
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        energies.availability = 'held'
        and of_teams(owners.team)
        and in_run(owners.run_key)
    group by owners.run_key
),

known as (
    select
        ledger.run_key,
        tokens.tokens,
        ledger.held_ms,
        case when ledger.is_priced then ledger.cost end as cost,
        case
            when 2 * energy.measured_ms >= ledger.held_ms
                then energy.energy_mj / 1000.0 * ledger.held_ms / nullif(energy.measured_ms, 0)
        end as energy_j,
        case when tokens.tokens is null then 'the job reports no tokens' end as tokens_reason
    from ledger
    left join tokens using (run_key)
    left join energy using (run_key)
)

select
    * exclude (energy_j, tokens_reason),
    tokens / nullif(cost, 0)::double as tokens_per_cost,
    coalesce(tokens_reason, case when coalesce(cost, 0) = 0 then 'the rate card has no price for it' end) as cost_reason,
    energy_j,
    tokens / nullif(energy_j, 0) as tokens_per_j,
    coalesce(
        tokens_reason, case when coalesce(energy_j, 0) = 0 then 'energy is measured for less than half of its time' end
    ) as energy_reason
from known
