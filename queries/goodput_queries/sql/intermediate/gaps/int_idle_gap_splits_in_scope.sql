-- Parts of idle gaps of the scope's owners: see intermediate.int_idle_gap_splits.
-- grain: gap, category
select splits.*
from intermediate.int_idle_gap_splits as splits
left join intermediate.int_numbered_owners as owners using (owner)
where of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
