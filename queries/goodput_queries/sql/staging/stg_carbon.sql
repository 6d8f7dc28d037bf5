-- Carbon intensities of electricity, with whole validity.
-- grain: none (an intensity of a cluster, or a later one, takes precedence)
-- cluster: null: any
select
    * exclude (source, valid_from_at, valid_to_at, note, load_sequence),
    coalesce(to_ms(valid_from_at), 0) as from_ms,
    coalesce(to_ms(valid_to_at), forever_ms()) as to_ms
from raw.carbon
