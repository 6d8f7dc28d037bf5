-- A GPU (or a numbered slot of a node whose GPUs have no known UUID) in a node for a time.
-- grain: source, cluster, gpu_uuid, valid_from_at
-- keep: valid_to_at; versions of source, cluster, gpu_uuid
-- times: planned valid_from_at
create table raw.gpus (
    source varchar not null,            -- ingestor
    cluster varchar,                    -- null: found through the node
    gpu_uuid varchar not null,          -- 'GPU-...'; a slot is '<node>#<slurm index>'
    node varchar not null,
    gpu_index integer,                  -- NVML / nvidia-smi order
    slurm_index integer,                -- order of gres.conf File=, the device minor
    pci_bus_id varchar,                 -- 00000000:19:00.0, lower case
    gpu_model varchar,                  -- as the source names it
    memory_bytes bigint,
    power_limit_w double,
    sm_clock_max_hz double,
    slowdown_temperature_c double,
    driver_version varchar,
    vbios_version varchar,
    valid_from_at timestamp,            -- null: as far back as there is evidence
    valid_to_at timestamp,              -- null: still there
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
