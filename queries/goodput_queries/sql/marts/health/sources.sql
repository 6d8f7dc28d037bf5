-- Sources with their number of rows, files and rejects, and their freshness.
-- grain: source
-- last_row_at: the latest time in its rows; null where the rows carry no single time
-- tables: with rows of the source; null: none
-- lag_s: seconds behind the latest time of any source
with loaded as (
    select
        source,
        min(window_start_at) as first_row_at,
        max(window_end_at) as last_row_at,
        sum(rows_new)::bigint as rows,
        count(distinct origin) as files,
        max(loaded_at) as last_loaded_at,
        list_sort(list(distinct table_name) filter (where rows_new > 0)) as tables
    from state.ingested
    group by source
),

rejected as (select source, count(*) as rejects from staging.stg_rejects group by source)

select
    loaded.*,
    date_diff('second', loaded.last_row_at, max(loaded.last_row_at) over ()) as lag_s,
    coalesce(rejected.rejects, 0) as rejects
from loaded
left join rejected using (source)
