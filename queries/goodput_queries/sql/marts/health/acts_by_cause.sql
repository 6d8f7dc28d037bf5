-- Acts of the scope's window (marts.acts) by who acted and cause, with what waited before them and what they cost.
-- grain: actor, cause, kind
-- access: team
-- actor, cause, kind: as in marts.acts, with `not known` where nothing says it
-- acts: number of acts; unknown: of how many the cost is not known, since the job reports no steps
-- untouched_ms, untouched_cost: lost before anybody acted; act_ms, act_cost: of the acts whose cost is known; costs are null
--  where the rate card has no price
-- again: acts after which the same cause came again within a day; again_ms, again_cost: what these cost
with judged as (
    select
        coalesce(actor, 'not known') as actor, coalesce(cause, 'not known') as cause,
        * exclude (actor, cause), verdict = 'same cause again' as is_again
    from marts.acts
)

select
    actor, cause, kind,
    count(*) as acts,
    count(*) - count(act_ms) as unknown,
    sum(untouched_ms)::bigint as untouched_ms,
    case when count(untouched_cost) = count(*) then sum(untouched_cost) end as untouched_cost,
    sum(act_ms)::bigint as act_ms,
    case when count(act_cost) = count(act_ms) then sum(act_cost) end as act_cost,
    count(*) filter (where is_again) as again,
    coalesce(sum(act_ms) filter (where is_again), 0)::bigint as again_ms,
    case when again = 0 then 0 when count(act_cost) = count(act_ms) then sum(act_cost) filter (where is_again) end as again_cost
from judged
group by actor, cause, kind
