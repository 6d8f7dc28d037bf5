-- Power of one idle GPU by model and category: mean of ten minutes in which the whole GPU was in the category and had a
-- reading, whoever owns it. Owners do not restrict it: another team is no reason to compute it again.
-- grain: cluster, gpu_model, category
-- evaluated: first
-- power_w: of one GPU
-- measured_ms: time of the ten minutes that power_w is the mean of
with idle as (
    select category
    from reference.gpu_second_categories
    where is_idle_category(category, "group")
),

whole as (
    select
        pieces.cluster,
        pieces.gpu_model,
        pieces.category,
        pieces.gpu_uuid,
        unnest(range(
            (pieces.start_ms + 599999) // ten_minutes_ms(), pieces.end_ms // ten_minutes_ms()
        )) * ten_minutes_ms() as start_ms,
        pieces.gpu_ms / (pieces.end_ms - pieces.start_ms) as share_ratio
    from marts.ledger_pieces as pieces
    semi join idle using (category)
    where
        not pieces.is_amount
        and pieces.hour_ms > scope_from_ms() - one_hour_ms()
        and pieces.hour_ms < scope_to_ms()
        and in_place(pieces.cluster, pieces.node, pieces.gpu_uuid, pieces.gpu_model)
),

-- of a partitioned GPU all parts: power is that of the device
of_gpus as (
    select cluster, gpu_model, category, gpu_uuid, start_ms
    from whole
    group by all
    having sum(share_ratio) > 0.999
)

select cluster, gpu_model, category, avg(readings.power_w) as power_w, ten_minutes_ms() * count(*) as measured_ms
from of_gpus
inner join marts.device_power as readings using (gpu_uuid, start_ms)
where readings.power_w is not null
group by cluster, gpu_model, category
