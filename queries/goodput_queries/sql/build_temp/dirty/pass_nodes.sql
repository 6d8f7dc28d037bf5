-- The nodes of which a pass replaces hours, where it does not replace them of all.
-- grain: cluster, node
-- written_by: ledger_build/materialise.py, since it is what differs between two builds
create temp table pass_nodes (cluster varchar not null, node varchar not null);
