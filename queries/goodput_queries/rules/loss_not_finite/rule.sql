-- skip_if_empty: marts.loss_anomalies
select
    cluster, run_key, step_at as start_at, step_at as end_at, confidence, evidence
from marts.loss_anomalies
where kind = 'not_finite'
