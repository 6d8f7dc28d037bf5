-- Results of tests of nodes in the scope's window: dcgmi diag, nvbandwidth, a site's own checks.
-- grain: source, cluster, node, event_at, test, gpu_indices
-- event_at: when the node was tested
-- test: its name
-- gpu_indices: numbers of its GPUs, with commas; empty: the node
-- result: pass, warn, fail, skip
-- message: what the test printed of it
select source, cluster, node, from_ms(at_ms) as event_at, test, gpu_indices, result, message
from staging.stg_node_tests
where in_window(at_ms, at_ms + 1) and in_place(cluster, node, null, null)
