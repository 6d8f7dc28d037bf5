-- Findings of the scope by all rules but losses of the ledger (marts.loss_findings), one row for each time that a rule's select
-- or family shows. Their time is in the ledger under other names: nothing of it is counted as coming back.
-- grain: none
-- evaluated: first
-- detail: what distinguishes two findings of one subject: a code, a port, a source, an engine
-- until_ms: null: it still is
-- gpu_ms, cost: GPU time concerned; null: not a time
-- severity: as the rule's select says, else of the rule; a ticket of less than a GPU-hour is a note
select
    found.rule,
    found.cluster,
    found.node,
    found.gpu_uuid,
    found.run_key,
    coalesce(found.detail, '') as detail,
    epoch_ms(found.start_at) as since_ms,
    epoch_ms(found.end_at) as until_ms,
    found.gpu_ms,
    found.cost,
    coalesce(found.severity, loss_severity(rules.severity, found.gpu_ms)) as severity,
    found.confidence,
    found.evidence,
    found.what_to_do,
    found.team
from every_rule() as found
inner join reference.finding_rules as rules using (rule)
