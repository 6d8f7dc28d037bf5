-- Xids in the scope's window by code: repeats in one incident of a GPU count once.
-- grain: code
-- incidents: incidents with the code; alone: of them those without another code
-- nodes, gpus: number of nodes and GPUs hit; runs: number of runs that had the GPU
-- meaning, severity, fault_domain, what_to_do: by the vendor's catalogue; null: it does not have the code
with codes as (
    select *, unnest(codes) as one_code from marts.gpu_incidents
)

select
    codes.one_code as code,
    any_value(catalogue.meaning) as meaning,
    any_value(catalogue.severity) as severity,
    any_value(catalogue.fault_domain) as fault_domain,
    count(*) as incidents,
    count(*) filter (where len(codes.codes) = 1) as alone,
    count(distinct (codes.cluster, codes.node)) as nodes,
    count(distinct (codes.cluster, codes.node, codes.device)) as gpus,
    count(distinct codes.run_key) as runs,
    max(codes.end_at) as last_at,
    any_value(catalogue.recommended_action) as what_to_do
from codes
left join reference.xid_codes as catalogue on codes.one_code = catalogue.xid
group by codes.one_code
