-- Timeline of each attempt's gang from job events; excludes time that only telemetry can classify.
-- grain: run_key, attempt, start_at
-- access: team
-- end_at: the end of the evidence while it runs
with clusters as (select * from intermediate.int_clusters)

select
    attempts.run_key,
    attempts.attempt,
    timeline.category,
    categories.label,
    categories.colour,
    timeline.phase,
    from_ms(timeline.start_ms) as start_at,
    from_ms(coalesce(timeline.end_ms, clusters.as_of_ms)) as end_at
from intermediate.int_attempts as attempts
inner join clusters using (cluster)
inner join intermediate.int_run_timeline as timeline using (attempt_key)
inner join reference.gpu_second_categories as categories using (category)
where
    of_teams(attempts.team)
    and in_cluster(attempts.cluster)
    and in_run(attempts.run_key)
    and in_window(timeline.start_ms, timeline.end_ms)
