-- Evidence by node that silent data corruption would leave in the scope's window. It confirms none: learning rate, data and
-- precision leave the same, a corrupted value that moves the loss little leaves nothing, and a loss is of all nodes of its
-- attempt. Nodes with a loss that was not finite or diverged (marts.loss_anomalies), or a failed test.
-- grain: cluster, node
-- confidence: Not confirmed, always
-- attempts: on the node, of those that report losses; not_finite, diverged: how many of them had such a loss; spread over
--  all nodes alike it speaks for the job, on one node alone for the node
-- not_finite_days: days on which a loss became NaN or infinite; first_at, last_at: of not finite and diverged losses
-- healed_without: of these attempts, those whose next one passed the step without it, and without this node;
--  healed_with: passed it with this node still in it; stayed_without: it came again without this node. The last two speak
--  for another cause
-- tests, failed_tests: results of tests of the node, and those that failed; null: none was reported
with losses as (
    select
        attempts.run_key, attempts.attempt, attempts.job_run_key, attempts.start_ms, attempts.end_ms,
        max(losses.step) as last_step
    from intermediate.int_step_losses as losses
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        in_window(attempts.start_ms, attempts.end_ms)
        and in_cluster(attempts.cluster)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
    group by all
),

found as (
    select
        run_key, attempt, bool_or(kind = 'diverged') as is_diverged,
        min(step) as step, min(step_at) as first_at, max(step_at) as last_at,
        min(step_at) filter (where kind = 'not_finite') as not_finite_at
    from marts.loss_anomalies
    group by run_key, attempt
),

places as (
    select distinct losses.run_key, losses.attempt, holds.cluster, holds.node
    from losses
    inner join intermediate.int_holds as holds using (job_run_key)
    where holds.start_ms < coalesce(losses.end_ms, forever_ms()) and coalesce(holds.end_ms, forever_ms()) > losses.start_ms
),

of_losses as (
    select
        places.cluster, places.node,
        count(*) as attempts,
        count(found.not_finite_at) as not_finite,
        count(*) filter (where found.is_diverged) as diverged,
        count(distinct date_trunc('day', found.not_finite_at)) as not_finite_days,
        min(found.first_at) as first_at, max(found.last_at) as last_at,
        count(*) filter (where later.last_step >= found.step and again.step is null and kept.node is null) as healed_without,
        count(*) filter (where later.last_step >= found.step and again.step is null and kept.node is not null) as healed_with,
        count(*) filter (where again.step is not null and kept.node is null) as stayed_without
    from places
    left join found using (run_key, attempt)
    left join losses as later on found.run_key = later.run_key and found.attempt + 1 = later.attempt
    left join found as again on later.run_key = again.run_key and later.attempt = again.attempt
    left join places as kept
        on later.run_key = kept.run_key and later.attempt = kept.attempt
        and places.cluster = kept.cluster and places.node = kept.node
    group by places.cluster, places.node
),

of_tests as (
    select cluster, node, count(*) as tests, count(*) filter (where result = 'fail') as failed_tests
    from marts.node_tests
    where result <> 'skip'
    group by cluster, node
)

select
    cluster, node, 'Not confirmed' as confidence,
    coalesce(columns(['attempts', 'not_finite', 'diverged', 'not_finite_days']), 0),
    first_at, last_at,
    coalesce(columns(['healed_without', 'healed_with', 'stayed_without']), 0),
    tests, failed_tests
from of_losses
full join of_tests using (cluster, node)
where in_node(node) and (first_at is not null or failed_tests > 0)
