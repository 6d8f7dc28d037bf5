-- Job runs whose parts begin and end by themselves, as the pods of a gang do.
-- grain: cluster, job_id_raw, submit_ms
select distinct cluster, job_id_raw, to_ms(submit_at) as submit_ms
from raw.holds
where start_at is not null
