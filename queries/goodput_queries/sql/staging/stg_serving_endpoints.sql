-- Processes that answer requests: none, unless a package has a view of this name.
-- grain: cluster, namespace, pod
select null::varchar as cluster, null::varchar as namespace, null::varchar as pod where false
