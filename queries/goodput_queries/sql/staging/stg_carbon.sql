-- Carbon intensities of electricity, with whole validity.
-- grain: none (an intensity of a cluster, or a later one, takes precedence)
-- cluster: null: any
select
    cluster,
    g_per_kwh,
    carbon_free_ratio,
    pue,
    server_ratio,
    coalesce(to_ms(valid_from_at), 0) as from_ms,
    coalesce(to_ms(valid_to_at), forever_ms()) as to_ms
from raw.carbon
