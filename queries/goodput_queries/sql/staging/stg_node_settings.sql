-- Settings of nodes with the cluster of their node, and what reference.known_settings has against their values.
-- grain: cluster, node, at_ms, run_id, setting
-- at_ms: epoch ms
-- value: null: unknown
-- problem: null: none is known
select
    coalesce(settings.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, settings.node) as node,
    to_ms(settings.ts) as at_ms,
    settings.run_id,
    settings.setting,
    settings.value,
    settings.unknown_because,
    settings.belongs_to,
    coalesce(known.is_compared, 1) = 1 as is_compared,
    case
        when
            regexp_full_match(settings.value, known.harmful)
            and (known.needs is null or needed.value not in ('none', '0'))
            then known.problem
        when not regexp_full_match(settings.value, known.accepted) then 'the variable does not accept this value'
        -- a list of how names begin; = names themselves, ^ what is left out
        when
            settings.setting in ('env:NCCL_SOCKET_IFNAME', 'env:NCCL_IB_HCA')
            and not starts_with(settings.value, '^')
            and not list_bool_or(
                list_transform(
                    string_split(needed.value, ','),
                    lambda device: list_bool_or(
                        list_transform(
                            string_split(ltrim(settings.value, '='), ','),
                            lambda name: case
                                when starts_with(settings.value, '=') then name in (device, split_part(device, ':', 1))
                                else starts_with(device, name)
                            end
                        )
                    )
                )
            )
            then 'the node has none that is called so; it has ' || needed.value
        when known.setting is null and starts_with(settings.setting, 'env:NCCL_') then (
            select 'NCCL has no such variable; it has ' || min(near.setting[5:])
            from reference.known_settings as near
            where damerau_levenshtein(near.setting, settings.setting) <= 2
            having count(*) > 0
        )
    end as problem
from raw.node_settings as settings
left join staging.stg_node_clusters as node_clusters on settings.node = node_clusters.node
left join reference.known_settings as known on settings.setting = known.setting
left join raw.node_settings as needed
    on settings.source = needed.source
    and settings.cluster is not distinct from needed.cluster
    and settings.node = needed.node
    and settings.ts = needed.ts
    and settings.run_id = needed.run_id
    and known.needs = needed.setting
