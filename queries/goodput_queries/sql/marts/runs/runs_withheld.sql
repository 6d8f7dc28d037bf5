-- How many runs had GPUs on the days of the window, and how many of them the reader does not see because they are of other teams.
-- Scope: window and cluster alone; whole days in UTC that the evidence has passed, so that no count says when on a day another team
-- had GPUs. Counts, and nothing else of these runs.
-- grain: none (one row)
-- access: everyone
-- runs: runs with an allocated GPU on these days, of all teams
-- withheld: of them, those without a job run of a team that the reader sees; 0 for who sees all
with days as (
    select
        cluster,
        scope_from_ms() // one_day_ms() * one_day_ms() as from_ms,
        least(
            (coalesce(chosen_to_ms(), as_of_ms) - 1) // one_day_ms() * one_day_ms() + one_day_ms(),
            as_of_ms // one_day_ms() * one_day_ms()
        ) as to_ms
    from intermediate.int_clusters
    where in_cluster(cluster)
)

select
    count(*) as runs,
    count(*) filter (where not is_shown) as withheld
from (
    select bool_or(of_teams(owners.team)) as is_shown
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join days on holds.cluster = days.cluster
    where
        holds.start_ms < days.to_ms
        and coalesce(holds.end_ms, forever_ms()) > days.from_ms
        and owners.run_key is not null
    group by owners.run_key
)
