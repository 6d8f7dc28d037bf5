-- Jobs of which one scheduler record was read with two submit times, as with a wrong time zone.
-- grain: job
-- job: cluster/id
select cluster || '/' || job_id_raw as job
from raw.job_runs
where db_index is not null
group by cluster, job_id_raw, db_index
having count(distinct submit_at) > 1
union
-- without the index: of two zones, at most 26 h apart, all times of a record differ by the same quarters of
-- an hour; what comes again and again is a job that is started by the clock
select cluster || '/' || job_id_raw
from raw.job_runs
where db_index is null and end_at is not null
group by cluster, job_id_raw, job_name, user_name, start_at - submit_at, end_at - submit_at
having
    count(distinct submit_at) = 2
    and to_ms(max(submit_at)) - to_ms(min(submit_at)) <= 26 * one_hour_ms()
    and (to_ms(max(submit_at)) - to_ms(min(submit_at))) % 900000 = 0
