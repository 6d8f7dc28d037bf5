-- What people answered to findings of a rule, of all time: of each finding their last word counts.
-- grain: rule
-- accepted, dismissed: number of findings; answers that do not name their rule (null) are left out
select
    rule,
    count(*) filter (where last = 'acknowledge') as accepted,
    count(*) filter (where last = 'dismiss') as dismissed
from (
    select rule, arg_max(action, said_at) as last
    from state.finding_actions
    where action <> 'note' and rule is not null
    group by rule, finding_key
)
where sees_all_teams()
group by rule
