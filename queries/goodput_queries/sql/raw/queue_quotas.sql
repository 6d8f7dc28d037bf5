-- What a queue of Kueue or Volcano may have of GPUs and uses, as it was listed last; of a LocalQueue its ClusterQueue alone.
-- grain: source, cluster, kind, queue, flavor, resource
-- keep: observed_at
-- times: observed observed_at
create table raw.queue_quotas (
    source varchar not null,
    cluster varchar not null,
    kind varchar not null,              -- ClusterQueue, LocalQueue, Queue (Volcano)
    queue varchar not null,             -- '<namespace>/<name>' of a LocalQueue
    parent varchar,                     -- cohort, or ClusterQueue of a LocalQueue
    flavor varchar not null,            -- ResourceFlavor; '' without
    resource varchar not null,          -- as kube-state-metrics prints it: nvidia_com_gpu; '' of a LocalQueue
    quota_gpus integer,                 -- nominal quota, or what it deserves
    limit_gpus integer,                 -- with what it may borrow; null: no limit
    reserved_gpus integer,              -- of admitted jobs, and of those whose quota is reserved
    used_gpus integer,                  -- of admitted jobs
    borrowed_gpus integer,
    state varchar,                      -- why it admits nothing; null: it does
    observed_at timestamp,              -- when it was listed
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
