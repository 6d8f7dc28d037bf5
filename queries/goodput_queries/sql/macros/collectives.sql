-- What bus bandwidth is of algorithm bandwidth (nccl-tests, PERFORMANCE.md): null for an operation that has none.
-- Sizes are those of nccl-tests.
create or replace macro bus_factor(operation, ranks) as (
    case
        when operation = 'AllReduce' then 2 * (ranks - 1) / ranks
        when operation in ('AllGather', 'ReduceScatter', 'AlltoAll') then (ranks - 1) / ranks
        when operation in ('Broadcast', 'Reduce') then 1
    end
);

-- Transfers one after the other in a ring of ranks; null: not done in a ring.
create or replace macro ring_steps(operation, ranks) as (
    case when operation = 'AllReduce' then 2 * (ranks - 1) when operation in ('AllGather', 'ReduceScatter') then ranks - 1 end
);

-- Seconds of an operation among other ranks than the latency and the time of a byte were fitted with, in a ring.
create or replace macro ring_time_s(operation, size_bytes, ranks, fitted_ranks, latency_s, byte_s) as (
    latency_s * ring_steps(operation, ranks) / ring_steps(operation, fitted_ranks)
    + byte_s * size_bytes * bus_factor(operation, ranks) / bus_factor(operation, fitted_ranks)
);

-- The size of an operation as nccl-tests counts it, from that of the NCCL Inspector.
create or replace macro tested_size(operation, message_bytes, ranks) as (
    (message_bytes * case when operation in ('AllGather', 'ReduceScatter') then ranks else 1 end)::bigint
);
