-- of the whole database: none where the scope is a part of it
select
    null as cluster,
    kind || ': ' || what as detail,
    from_ms(scope_start((select min(first_ms) from intermediate.int_clusters))) as start_at,
    from_ms(scope_end((select max(as_of_ms) from intermediate.int_clusters))) as end_at,
    'Confirmed' as confidence,
    what || ': ' || counted(n, 'case') || coalesce(', for example ' || left(example, 120), '') as evidence,
    what_to_do
from marts.data_quality
where
    is_whole_fleet()
    and what_to_do is not null
    -- a time range without data has no findings; evidence without a cluster has no time
    and (select coalesce(bool_or(in_window(first_ms, as_of_ms)), true) from intermediate.int_clusters)
