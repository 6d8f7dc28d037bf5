-- GPU quota and use of queues of Kueue and Volcano: the flavors that the last listing of a queue has.
-- grain: cluster, kind, queue, flavor, resource
-- resource: '' of a LocalQueue
select * exclude (source, load_sequence)
from raw.queue_quotas
qualify observed_at is not distinct from max(observed_at) over (partition by cluster, kind, queue)
