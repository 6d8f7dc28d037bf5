-- Sums of marts.idle_gap_parts by category and by length of the whole gap: a big fleet has many gaps.
-- grain: category, is_beside_work, least_s
-- evaluated: first
-- access: team
-- least_s: shortest gap of the class, seconds
-- gaps: number of gaps with such a part; main_gaps: of them those that have most of their time in this category
-- unpriced: parts without a price
with sums as (
    select
        category,
        is_beside_work,
        case
            when end_ms - start_ms >= one_day_ms() then 86400
            when end_ms - start_ms >= 21600000 then 21600
            when end_ms - start_ms >= one_hour_ms() then 3600
            when end_ms - start_ms >= 1800000 then 1800
            when end_ms - start_ms >= ten_minutes_ms() then 600
            when end_ms - start_ms >= 300000 then 300
            when end_ms - start_ms >= 60000 then 60
            when end_ms - start_ms >= 30000 then 30
            when end_ms - start_ms >= 10000 then 10
            when end_ms - start_ms >= 5000 then 5
            else 1
        end as least_s,
        count(*) as gaps,
        count_if(is_main)::bigint as main_gaps,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        count(*) - count(cost) as unpriced
    from intermediate.int_idle_gap_splits_in_scope
    group by all
)

select sums.category, categories.label, categories.colour, sums.* exclude (category)
from sums
inner join reference.gpu_second_categories as categories using (category)
