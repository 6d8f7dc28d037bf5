-- A transport that a process uses in a communicator, by NCCL's own log.
-- grain: source, cluster, comm_id, node, pid, transport
-- keep: nodes
create table raw.comm_transports (
    source varchar not null,
    cluster varchar,
    comm_id varchar not null,           -- '' where the process has several and the line does not say which
    node varchar not null,
    pid bigint not null,
    nodes integer,                      -- of the communicator
    transport varchar not null,         -- P2P/CUMEM, P2P/IPC, SHM, NET/IB, NET/IB/GDRDMA, NET/Socket ...
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
