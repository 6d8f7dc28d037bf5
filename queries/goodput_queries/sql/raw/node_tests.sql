-- Results of tests of a node: dcgmi diag, nvbandwidth, a site's own checks.
-- grain: source, cluster, node, ts, test, gpu_indices
-- keep: replace
-- times: by ts
create table raw.node_tests (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    ts timestamp not null,
    test varchar not null,
    gpu_indices varchar not null,       -- numbers of its GPUs as the test has them, with commas; '' the node
    result varchar not null,            -- pass, warn, fail, skip
    message varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
