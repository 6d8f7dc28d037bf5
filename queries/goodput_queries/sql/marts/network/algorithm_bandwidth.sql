-- Bus bandwidth of collectives by the algorithm and protocol that NCCL chose, where a source has them.
-- grain: cluster, operation, size_from_bytes, ranks, nodes, algorithm, protocol, measured_by
-- algorithm, protocol: as NCCL names them: RING, TREE, NVLS ...; LL, LL128, SIMPLE
-- measured_by: operations (records of the NCCL Inspector, the algorithm from NCCL's log), means (of a GPU over a window, from
--  the Inspector's Prometheus mode: the time that ranks wait for late ones is in them)
-- samples: number of operations, or of means
-- p50_bytes_per_s, p50_exec_s: medians
-- offload_gain_ratio: of an algorithm that reduces in the switch (NVLS, CollNet): bandwidth over the best of the others less 1
with measured as (
    select cluster, operation, size_from_bytes, ranks, nodes, algorithm, protocol, busbw_bytes_per_s, exec_time_s, 'operations' as measured_by
    from marts.operation_bandwidth
    union all
    select
        cluster, operation, size_bucket(tested_size(operation, size_from_bytes, ranks)), ranks, nodes, algorithm, protocol,
        busbw_bytes_per_s, exec_time_s, 'means'
    from staging.stg_collective_summaries
    where
        not is_p2p
        and ranks > 1
        and size_from_bytes > 0
        and busbw_bytes_per_s > 0
        and ts >= from_ms(scope_from_ms())
        and ts < scope_to_at()
        and in_cluster(cluster)
)

select
    cluster, operation, size_from_bytes, ranks, nodes, algorithm, protocol, measured_by,
    count(*) as samples,
    median(busbw_bytes_per_s) as p50_bytes_per_s,
    median(exec_time_s) as p50_exec_s,
    case
        when algorithm similar to '(NVLS|COLLNET).*'
            then p50_bytes_per_s / max(median(busbw_bytes_per_s)) filter (where not algorithm similar to '(NVLS|COLLNET).*') over (
                partition by cluster, operation, size_from_bytes, ranks, nodes, measured_by
            ) - 1
    end as offload_gain_ratio
from measured
where algorithm is not null
group by cluster, operation, size_from_bytes, ranks, nodes, algorithm, protocol, measured_by
