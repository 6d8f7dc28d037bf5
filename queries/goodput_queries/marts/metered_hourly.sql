-- Who had the GPUs of nodes with a power meter, hour by hour: by that time is shared what the meter counts beyond them.
-- grain: cluster, node, job_run_key, availability, gpu_model, mig_profile, hour_ms
-- availability: held, free, not_available
-- materialised: hourly, since few nodes have a meter, and what a job did with its GPUs changes nothing here
-- needs: intermediate.int_node_energy
-- dirties: hour_ms
select
    ledger.cluster,
    ledger.node,
    ledger.job_run_key,
    categories.group as availability,
    ledger.gpu_model,
    ledger.mig_profile,
    ledger.hour_ms,
    sum(ledger.gpu_ms)::bigint as gpu_ms
from marts.ledger_hourly_by_node as ledger
inner join reference.gpu_second_categories as categories using (category)
semi join intermediate.int_node_energy as meters
    on ledger.cluster = meters.cluster and ledger.node = meters.node and ledger.hour_ms = meters.hour_ms
where ledger.hour_ms >= build_from_ms() and ledger.hour_ms < build_to_ms()
group by all
