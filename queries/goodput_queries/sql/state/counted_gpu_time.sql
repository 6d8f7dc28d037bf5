-- GPU time by labels, of all hours counted so far: what the counters of `/metrics` show (counted_hours.py). It is no
-- evidence and no page reads it: rebuilds leave it alone, so that counters never fall.
-- grain: cluster, category, team, partition, gpu_model
-- team, partition, gpu_model: '' for none; 'other' for those beyond the limit of label values
create table state.counted_gpu_time (
    cluster varchar not null,
    category varchar not null,
    team varchar not null,
    partition varchar not null,
    gpu_model varchar not null,
    gpu_ms bigint not null,
    until_ms bigint not null            -- end of the last hour with such time
);
