-- Contradictions and gaps in the evidence, with the recommended action: none of it is hidden in a total.
-- grain: kind, what
-- evaluated: first
-- n: how many cases
-- gpu_ms: GPU time concerned, where the ledger has it that of the scope; null where it has none
with ledger as materialized (
    select category, gpu_uuid, job_run_key, min(node) as node, sum(gpu_ms)::bigint as gpu_ms
    from marts.ledger_owned
    where category in ('free_unknown', 'unknown', 'busy_unclassified')
    group by category, gpu_uuid, job_run_key
),

findings as (
    from intermediate.int_contradictions
    union all
    select
        'allocated, GPUs not placed',
        'the scheduler allocated GPUs but '
        || case reason
            when 'no_node_list' then 'names no node'
            when 'ambiguous_time' then 'says only the local time in an hour that came twice (clocks went back)'
            when 'part_of_gpu' then 'only parts of them (gres/shard, gres/mps), and does not name which'
            else 'the nodes had fewer at the time'
        end
        || ': this time is outside capacity, and charged (marts.unplaced)',
        count(distinct job_run_key), sum(gpu_ms), min(job_run_key),
        case reason
            when 'part_of_gpu' then null
            when 'ambiguous_time' then 'Export the accounting again with SLURM_TIME_FORMAT=%s'
            when 'no_node_list' then 'Export the accounting with NodeList (`sacct --format`), or with allocated nodes'
            else 'Ingest `scontrol show node` or an inventory file with all GPUs of these nodes and their dates'
        end
    from marts.unplaced
    group by reason
    union all
    select
        'GPU time without a price', 'the rate card has no matching row', count(distinct coalesce(gpu_model, '?')),
        sum(gpu_ms), min(coalesce(gpu_model, 'unknown model')),
        'Add a row for it to the rate card and ingest it (source rates)'
    from marts.ledger_scoped_by_node as ledger
    anti join intermediate.int_prices as prices
        on ledger.cluster = prices.cluster
        and coalesce(ledger.gpu_model, '') = prices.gpu_model
        and ledger.hour_ms >= prices.from_ms
        and ledger.hour_ms < prices.to_ms
    union all
    select
        'free time without node states', 'no source reports whether these GPUs were up while they were not allocated',
        count(distinct gpu_uuid), sum(gpu_ms), min(node),
        'Ingest Slurm''s `sacctmgr show event`, or `sinfo` with --observed-at; of Kubernetes kube-state-metrics'
    from ledger where category = 'free_unknown'
    union all
    select
        'allocated time without evidence', 'neither job events nor telemetry cover these GPUs',
        count(distinct gpu_uuid), sum(gpu_ms), min(node), 'Scrape these GPUs, or let their jobs report steps'
    from ledger where category = 'unknown'
    union all
    select
        'active time without job events', 'telemetry shows activity; no job event shows whether it was useful',
        count(distinct coalesce(job_run_key, gpu_uuid)), sum(gpu_ms), min(coalesce(job_run_key, node)),
        'Let the job report its steps (job events, five lines of Python)'
    from ledger where category = 'busy_unclassified'
)

select kind, what, n::bigint as n, gpu_ms::bigint as gpu_ms, example, what_to_do
from findings
where n > 0
