-- How many runs had GPUs in the window, and how many of them the reader does not see because they are of other teams.
-- Scope: window and cluster alone. Counts, and nothing else of these runs.
-- grain: none (one row)
-- access: everyone
-- runs: runs with an allocated GPU in the window, of all teams
-- withheld: of them, those without a job run of a team that the reader sees; 0 for who sees all
select
    count(*) as runs,
    count(*) filter (where not is_shown) as withheld
from (
    select bool_or(of_teams(owners.team)) as is_shown
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and owners.run_key is not null
        and (getvariable('scope_cluster') is null or holds.cluster = getvariable('scope_cluster'))
    group by owners.run_key
)
