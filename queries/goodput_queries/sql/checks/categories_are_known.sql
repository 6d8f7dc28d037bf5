-- Categories in the ledger that the reference does not define, and allocated ones without a hold (or the reverse),
-- but for activity and serving on nodes without a scheduler, whose owner is unknown.
-- grain: category
select segments.category, categories.group, count(*) as segments
from marts.ledger_pieces as segments
left join reference.gpu_second_categories as categories using (category)
group by all
having categories.group is null
    or bool_or(
        (categories.group = 'held') <> (segments.job_run_key is not null)
        and not (segments.category = 'busy_unclassified' and segments.phase in ('owner_unknown', 'short_idle'))
        and not (segments.category = 'idle_held' and segments.phase = 'pause')
        and not is_serving(segments.phase)
    )
