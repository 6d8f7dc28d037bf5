-- Something that happened to a GPU: an Xid, an ECC error, a row remap.
-- grain: source, cluster, node, pci_bus_id, gpu_uuid, ts, kind, code, message
-- keep: process_name
-- times: by ts
create table raw.gpu_events (
    source varchar not null,
    cluster varchar,
    node varchar,
    gpu_uuid varchar,
    pci_bus_id varchar,                 -- normalised: 00000000:9b:00.0
    ts timestamp not null,
    ts_precision varchar not null,      -- exact, approximate (dmesg -T, within an interval of a latch), at_or_before
    kind varchar not null,              -- xid, sxid, off_the_bus, reset_required, unresponsive, unhealthy
    code integer,
    pid varchar,
    process_name varchar,
    message varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
