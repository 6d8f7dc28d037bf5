-- What a kWh of the GPUs' counters cost in each hour of a closed day, whatever the tariffs say later.
-- grain: cluster, hour_at
create table raw.statement_tariffs (
    source varchar not null,
    cluster varchar not null,
    hour_at timestamp not null,
    usd_per_kwh decimal(18, 9) not null -- with what server and site add
);
