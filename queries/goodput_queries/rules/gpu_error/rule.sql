-- skip_if_empty: marts.gpu_incidents
select
    cluster,
    node,
    gpu_uuid,
    run_key,
    case when gpu_uuid is null then device else '' end as detail,
    start_at,
    end_at,
    -- one that the catalogue does not have is taken for fatal
    case
        when not coalesce(severity in ('gpu_fatal', 'node_fatal'), true) then 'minor'
        when starts_with(what_to_do, 'None') then 'minor'
        when tests.passed > 0 and tests.failed = 0 then 'tested'
        -- where it takes its node down, the node that is down is the page
        when
            run_key is not null
            and not exists (
                select 1
                from marts.node_outages as outages
                where
                    outages.state = 'down'
                    and outages.cluster = incidents.cluster
                    and outages.node = incidents.node
                    and epoch_ms(outages.start_at) <= epoch_ms(incidents.end_at) + threshold('failure_reach_ms')
                    and epoch_ms(coalesce(outages.end_at, incidents.end_at)) >= epoch_ms(incidents.start_at)
            )
            then 'allocated'
    end as effect,
    'Confirmed' as confidence,
    case kind when 'xid' then 'Xid ' || code when 'sxid' then 'SXid ' || code || ' of an NVSwitch' else replace(kind, '_', ' ') end
        || coalesce(' (' || meaning || ')', '')
        || ', ' || counted(events, 'line') || ' of ' || sources
        || case
            when tests.failed > 0 then '; tested since, failed: ' || tests.failed_test
            when tests.passed > 0 then '; tested since, passed: ' || tests.passed_test
            -- where nodes are tested and the results are read
            when exists (select 1 from staging.stg_node_tests as every where every.cluster = incidents.cluster)
                then '; no test on record since'
            else ''
        end as evidence,
    what_to_do
from marts.gpu_incidents as incidents
left join lateral (
    select
        count_if(since.result = 'pass') as passed,
        count_if(since.result = 'fail') as failed,
        min(since.test) filter (where since.result = 'pass') as passed_test,
        min(since.test) filter (where since.result = 'fail') as failed_test
    from (
        -- the last word of each test of the node or of this GPU
        select test, arg_max(result, at_ms) as result
        from staging.stg_node_tests as tests
        where
            tests.cluster = incidents.cluster
            and tests.node = incidents.node
            and (tests.gpu_indices = '' or list_contains(string_split(tests.gpu_indices, ','), incidents.gpu_index::varchar))
            and tests.at_ms > epoch_ms(incidents.end_at)
            and tests.at_ms < scope_to_ms()
        group by test, gpu_indices
    ) as since
) as tests on true
where
    class = 'hardware'
    and (sees_all_teams() or run_key in (select run_key from intermediate.int_runs_of_one_team where of_teams(team)))
    -- of a fault of the node's NVLinks each GPU and NVSwitch has a part
    and not exists (
        select 1
        from marts.fabric_incidents as fabric
        left join reference.xid_codes as codes on incidents.kind <> 'sxid' and codes.xid = incidents.code
        where
            fabric.kind = 'nvlink'
            and (incidents.kind = 'sxid' or codes.class = 'nvlink')
            and fabric.cluster = incidents.cluster
            and list_contains(fabric.node_names, incidents.node)
            and incidents.start_at <= fabric.last_at
            and incidents.end_at >= fabric.start_at
    )
