-- The attempt of a process, where its node and its number name one alone.
-- grain: cluster, node, pid
select cluster, node, pid, min(attempt_key) as attempt_key
from intermediate.int_rank_gpus
where pid is not null
group by cluster, node, pid
having count(distinct attempt_key) = 1
