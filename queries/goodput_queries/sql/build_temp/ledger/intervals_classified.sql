-- Every moment of every unit in exactly one category: one case, whose order is the order of
-- precedence. The only place where a category is decided; stepping is a stretch of an attempt's steps, whose amounts have
-- theirs from its timeline (macros/amounts.sql).
-- grain: unit, start_ms
-- materialised: inline, since it is wide, and int_ledger_segments alone asks it
with pieces as (select distinct piece, category, phase from temp.pieces),

facts as (select distinct on (fact) * from temp.node_facts)

select
    states.unit,
    greatest(states.start_ms, build_from_ms()) as start_ms,
    states.hold,
    -- what the job says of its steps and phases wins; answered requests are progress, however the attempt ended
    states.serving > 0 and (
        pieces.category is null or pieces.category = 'failed_without_progress' and pieces.phase is null
    ) as is_served,
    case when is_served then 0 else states.piece end as piece,
    case
        when states.hold <> 0 then
            case
                when is_served then serving_category(states.serving)
                when pieces.category is not null then pieces.category
                -- the job run may be what makes another GPU of its node active
                when states.doubts > 0 and (states.emptiness = 1 or states.activity in (3, 7)) then 'unknown'
                when states.emptiness = 1 then 'idle_held'
                when states.activity in (3, 7) then 'idle_held'
                when states.activity in (1, 2) then 'busy_unclassified'
                else 'unknown'
            end
        -- nobody is known to have it, and nobody could say so
        when states.activity in (4, 5, 6, 8) and states.serving > 0 then serving_category(states.serving)
        when states.activity in (4, 8) then 'busy_unclassified'
        when states.activity = 5 then 'idle_held'
        when facts.state is not null then facts.state
        when facts.is_reserved then 'reserved_idle'
        when facts.is_planned then 'planned'
        when facts.is_stranded or units.gpu_instance = 'rest' then 'stranded'
        when facts.is_watched and case
            when units.mig_profile is null then facts.has_demand
            else contains(facts.demanded_profiles, ',*,')
                or contains(facts.demanded_profiles, ',' || lower(units.mig_profile) || ',')
        end then 'idle_with_demand'
        when facts.is_watched or states.activity = 6 then 'idle_no_demand'
        else 'free_unknown'
    end as category,
    case
        when states.hold <> 0 then
            case
                when is_served then serving_phase(states.serving)
                when pieces.category is not null then pieces.phase
                when states.doubts > 0 and (states.emptiness = 1 or states.activity in (3, 7)) then 'gpu_assumed'
                when states.emptiness = 1 then 'no_process'
                when states.activity = 1 then 'short_idle'
                when states.activity = 3 then 'idle'
                when states.activity = 7 then 'pause'
            end
        when states.activity in (4, 5, 6, 8) and states.serving > 0 then serving_phase(states.serving)
        when states.activity = 4 then 'owner_unknown'
        when states.activity = 8 then 'short_idle'
        when states.activity = 5 then 'pause'
        when facts.is_watched and facts.state is null and not facts.is_demand_known then 'demand_unknown'
        when
            states.activity = 6
            and facts.state is null
            and not coalesce(facts.is_watched or facts.is_reserved or facts.is_planned or facts.is_stranded, false)
            then 'demand_unknown'
    end as phase
from temp.states as states
inner join temp.units as units using (unit)
left join pieces using (piece)
left join facts using (fact)
