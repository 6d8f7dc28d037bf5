-- Number of launched operations by kind and communicator, with times in epoch ms.
-- grain: comm_id, operation, ts_ms, launched
select
    * exclude (source, comm_ranks, ts, load_sequence),
    max(comm_ranks) over (partition by comm_id) as comm_ranks,
    to_ms(ts) as ts_ms
from raw.comm_counts
