-- Notes that people wrote on runs: past cases, fixes, why a run is as it is.
-- grain: run_key, said_at
-- access: team
-- note: as it was written, up to 500 characters; said_by: whoever wrote it
with owners as (
    select run_key, any_value(run_id) as run_id, any_value(cluster) as cluster
    from intermediate.int_job_run_owners
    where
        of_owner(team, user_name, run_key, partition)
        and in_cluster(cluster)
    group by run_key
)

select owners.cluster, notes.run_key, owners.run_id, notes.said_at, notes.said_by, notes.note
from state.run_notes as notes
inner join owners using (run_key)
