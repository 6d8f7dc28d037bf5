-- Price of a kWh in each hour of a closed day, independent of later tariffs.
-- grain: cluster, hour_at
create table billing.statement_tariffs (
    source varchar not null,
    cluster varchar not null,
    hour_at timestamp not null,
    price_per_kwh decimal(18, 9) not null, -- of the GPUs' counters: with what server and site add
    price_per_wall_kwh decimal(18, 9)     -- of the nodes' meters: with what the site adds
);
