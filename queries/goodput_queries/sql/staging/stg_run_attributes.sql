-- What jobs report of what they run: code, image and versions, in fields of `job.start` and `metric` events, and versions
-- that their logs print.
-- grain: none (a field of an event as it was written)
-- attribute: of reference.run_attributes; value: as it is written, at most 200 characters
with reported as (
    select
        coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
        events.run_id,
        events.attempt,
        events.source,
        to_ms(events.ts) as at_ms,
        events.extra
    from raw.job_events as events
    left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
    where
        events.extra is not null
        and (
            events.event in ('job.start', 'metric')
            or (events.source = 'job-log' and contains(events.extra::varchar, '_version"'))
        )
)

select
    reported.* exclude (extra),
    attributes.attribute,
    (reported.extra ->> ('$.' || attributes.attribute))[:200] as value
from reported
cross join (select attribute from reference.run_attributes where is_reported = 1) as attributes
where nullif(trim(reported.extra ->> ('$.' || attributes.attribute)), '') is not null
