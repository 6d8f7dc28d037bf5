-- Findings of the scope by all rules but losses of the ledger (marts.loss_findings), one row for each time that a rule's select
-- or family shows. Their time is in the ledger under other names: nothing of it is counted as coming back.
-- grain: none
-- evaluated: first
-- detail: what distinguishes two findings of one subject: a code, a port, a source, an engine
-- until_ms: null: it still is
-- gpu_ms, cost: GPU time concerned; null: not a time
-- effect: what it does, by which its severity follows (severity_when of the rule); null: no such effect
-- is_over: newer evidence shows the end of it; null: the select does not look for it
-- cause: more evidence of a loss by the same rule, and all there is before the ledger has any
select
    found.* exclude (detail, start_at, end_at),
    coalesce(found.detail, '') as detail,
    epoch_ms(found.start_at) as since_ms,
    epoch_ms(found.end_at) as until_ms
from every_rule() as found
